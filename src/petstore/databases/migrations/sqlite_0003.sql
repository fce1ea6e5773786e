-- What changed, in the order of the commits. key_id is there if an event concerns one key alone.
CREATE TABLE events (
    sequence INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    type TEXT NOT NULL,
    at INTEGER NOT NULL,
    resource TEXT NOT NULL,
    key_id INTEGER,
    data TEXT NOT NULL,
    previous TEXT
) STRICT;
