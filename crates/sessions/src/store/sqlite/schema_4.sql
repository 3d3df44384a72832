-- What people call a session, under its number. Apart from its row, which its owner writes.
CREATE TABLE labels (
    session INTEGER PRIMARY KEY,
    labels  TEXT NOT NULL
);
