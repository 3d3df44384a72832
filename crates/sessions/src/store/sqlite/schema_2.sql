-- The CRC-32 of a row's values; NULL in rows that were written before there were any. That of a session
-- is the first field of its record.
ALTER TABLE batches ADD COLUMN checksum INTEGER;
ALTER TABLE keys ADD COLUMN checksum INTEGER;
