-- One row for each session. The number gives the order in which they began and is never used
-- again: the events of a deleted session may still be there under it.
CREATE TABLE sessions (
    session INTEGER PRIMARY KEY AUTOINCREMENT,
    id      TEXT    NOT NULL UNIQUE,
    state   TEXT    NOT NULL,
    owner   TEXT,
    last    INTEGER NOT NULL,
    record  TEXT    NOT NULL
);

-- The restart sweep does not depend on how many sessions have ended.
CREATE INDEX live_sessions ON sessions (session) WHERE state <> 'ended';

-- One row for each batch, or several where it is large: part 0, 1, … of its lines. `size` is the
-- length of them all.
CREATE TABLE batches (
    session INTEGER NOT NULL,
    first   INTEGER NOT NULL,
    part    INTEGER NOT NULL,
    count   INTEGER NOT NULL,
    size    INTEGER NOT NULL,
    lines   BLOB    NOT NULL
);

CREATE UNIQUE INDEX batches_in_order ON batches (session, first, part);

CREATE TABLE keys (
    key     TEXT    PRIMARY KEY,
    session INTEGER NOT NULL,
    answer  TEXT    NOT NULL
) WITHOUT ROWID;

CREATE INDEX keys_of_session ON keys (session);

-- Deleted sessions whose events are not all removed yet.
CREATE TABLE deleted (session INTEGER PRIMARY KEY);
