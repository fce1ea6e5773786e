-- Files that people import in the console. ``waiting`` animals of a file are still to be added, and
-- ``refused`` rows cannot be. The ids of the animals added so far are from first_id to last_id.
CREATE TABLE console_imports (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key_id BIGINT NOT NULL REFERENCES api_keys (id),
    digest BYTEA NOT NULL,
    file TEXT NOT NULL,
    columns TEXT NOT NULL,
    waiting BIGINT NOT NULL,
    added BIGINT NOT NULL DEFAULT 0,
    refused BIGINT NOT NULL,
    first_id BIGINT,
    last_id BIGINT,
    created_at BIGINT NOT NULL,
    finished_at BIGINT
);

CREATE INDEX console_imports_by_key ON console_imports (key_id);
CREATE INDEX console_imports_by_age ON console_imports (created_at);

-- The rows of a file, as JSON, by the number of the first one. An added batch has its refused rows.
CREATE TABLE console_import_batches (
    import_id BIGINT NOT NULL REFERENCES console_imports (id) ON DELETE CASCADE,
    start BIGINT NOT NULL,
    waiting BIGINT NOT NULL,
    refused BIGINT NOT NULL,
    rows TEXT NOT NULL,
    PRIMARY KEY (import_id, start)
);
