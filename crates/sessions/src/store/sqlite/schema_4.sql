-- What people call a session, under its number. Apart from its row, which its owner writes.
CREATE TABLE labels (
    session INTEGER PRIMARY KEY,
    labels  TEXT NOT NULL
);

-- When a session was last active, in milliseconds since 1970, as of its last change of state or a minute ago.
-- Sessions of older stores have no row until they are continued.
CREATE TABLE activity (
    session INTEGER PRIMARY KEY,
    at      INTEGER NOT NULL
);

CREATE INDEX by_activity ON activity (at, session);
