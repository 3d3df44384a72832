-- How `lines` is stored: 0 as it is, 1 compressed with zstd and the first dictionary. Rows that were
-- written before stay as they are.
ALTER TABLE batches ADD COLUMN codec INTEGER NOT NULL DEFAULT 0;
