-- Requests of each key by UTC day and status of the response. Each batch of them is added once, as
-- deprecated_call_saves tells.
CREATE TABLE responses (
    key_id INTEGER NOT NULL REFERENCES api_keys (id),
    day INTEGER NOT NULL,
    status INTEGER NOT NULL,
    requests INTEGER NOT NULL,
    PRIMARY KEY (key_id, day, status)
) STRICT, WITHOUT ROWID;

CREATE INDEX responses_by_day ON responses (day, key_id);
