-- Networks as text, such as 203.0.113.0/24, separated by spaces; none is anywhere.
ALTER TABLE api_keys ADD COLUMN allowed_networks TEXT NOT NULL DEFAULT '';
ALTER TABLE api_keys ADD COLUMN rehearse_sunset BIGINT NOT NULL DEFAULT 0;

-- Calls of deprecated operations on each UTC day, and the latest of them.
CREATE TABLE deprecated_calls (
    key_id BIGINT NOT NULL REFERENCES api_keys (id),
    operation TEXT NOT NULL,
    day BIGINT NOT NULL,
    calls BIGINT NOT NULL,
    last_called_at BIGINT NOT NULL,
    last_user_agent TEXT NOT NULL,
    last_request_id TEXT NOT NULL,
    PRIMARY KEY (key_id, operation, day)
);

CREATE INDEX deprecated_calls_by_day ON deprecated_calls (day, key_id);

-- The last batch of counts that each process has saved, so that no batch is added twice.
CREATE TABLE deprecated_call_saves (
    process TEXT PRIMARY KEY,
    batch BIGINT NOT NULL,
    saved_at BIGINT NOT NULL
);

CREATE INDEX deprecated_call_saves_by_age ON deprecated_call_saves (saved_at);

-- What the holder of a key was told, once for each period.
CREATE TABLE key_notices (
    key_id BIGINT NOT NULL REFERENCES api_keys (id),
    notice TEXT NOT NULL,
    period BIGINT NOT NULL,
    noticed_at BIGINT NOT NULL,
    PRIMARY KEY (key_id, notice, period)
);

CREATE INDEX key_notices_by_age ON key_notices (noticed_at);
