-- Requests of each key by UTC day and status of the response. Each batch of them is added once, as
-- deprecated_call_saves tells.
CREATE TABLE responses (
    key_id BIGINT NOT NULL REFERENCES api_keys (id),
    day BIGINT NOT NULL,
    status BIGINT NOT NULL,
    requests BIGINT NOT NULL,
    PRIMARY KEY (key_id, day, status)
);

CREATE INDEX responses_by_day ON responses (day, key_id);
