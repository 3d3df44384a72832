-- Everything here comes from the log and can be made again from it.

-- How far each session is read, under its number in the store, and what is needed to continue.
CREATE TABLE followed (
    session   INTEGER PRIMARY KEY,
    id        TEXT    NOT NULL,
    seq       INTEGER NOT NULL,
    agent     TEXT    NOT NULL,
    directory TEXT,
    state     TEXT    NOT NULL
);

-- Turns that ended; a turn with several models has a part for each.
CREATE TABLE turns (
    session   INTEGER NOT NULL,
    seq       INTEGER NOT NULL,
    part      INTEGER NOT NULL,
    ended     INTEGER NOT NULL,
    model     TEXT,
    input     INTEGER NOT NULL,
    output    INTEGER NOT NULL,
    cached    INTEGER NOT NULL,
    created   INTEGER NOT NULL,
    reasoning INTEGER NOT NULL,
    cost      REAL,
    turns     INTEGER NOT NULL,
    calls     INTEGER NOT NULL,
    waited    INTEGER NOT NULL,
    PRIMARY KEY (session, seq, part)
) WITHOUT ROWID;

CREATE INDEX turns_by_time ON turns (ended);

-- Texts with their words. `scope` has two words: the session and the type of the event.
CREATE VIRTUAL TABLE texts USING fts5 (
    scope, body, session UNINDEXED, seq UNINDEXED, time UNINDEXED,
    tokenize = 'unicode61 remove_diacritics 2'
);

PRAGMA user_version = 1;
