-- Files that people import in the console. ``waiting`` animals of a file are still to be added, and
-- ``refused`` rows cannot be. The ids of the animals added so far are from first_id to last_id.
CREATE TABLE console_imports (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    key_id INTEGER NOT NULL REFERENCES api_keys (id),
    digest BLOB NOT NULL,
    file TEXT NOT NULL,
    columns TEXT NOT NULL,
    waiting INTEGER NOT NULL,
    added INTEGER NOT NULL DEFAULT 0,
    refused INTEGER NOT NULL,
    first_id INTEGER,
    last_id INTEGER,
    created_at INTEGER NOT NULL,
    finished_at INTEGER
) STRICT;

CREATE INDEX console_imports_by_key ON console_imports (key_id);
CREATE INDEX console_imports_by_age ON console_imports (created_at);

-- The rows of a file, as JSON, by the number of the first one. An added batch has its refused rows.
CREATE TABLE console_import_batches (
    import_id INTEGER NOT NULL REFERENCES console_imports (id) ON DELETE CASCADE,
    start INTEGER NOT NULL,
    waiting INTEGER NOT NULL,
    refused INTEGER NOT NULL,
    rows TEXT NOT NULL,
    PRIMARY KEY (import_id, start)
) STRICT;
