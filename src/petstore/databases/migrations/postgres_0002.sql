-- What changed, in the order of the commits. key_id is there if an event concerns one key alone.
CREATE TABLE events (
    sequence BIGINT PRIMARY KEY,
    id TEXT NOT NULL,
    type TEXT NOT NULL,
    at BIGINT NOT NULL,
    resource TEXT NOT NULL,
    key_id BIGINT,
    data TEXT NOT NULL,
    previous TEXT
);

-- Events as they are recorded, until a process gives them their place.
CREATE TABLE events_outbox (
    position BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    transaction XID8 NOT NULL DEFAULT pg_current_xact_id(),
    id TEXT NOT NULL,
    type TEXT NOT NULL,
    at BIGINT NOT NULL,
    resource TEXT NOT NULL,
    key_id BIGINT,
    data TEXT NOT NULL,
    previous TEXT
);

CREATE INDEX events_outbox_by_transaction ON events_outbox (transaction, position);
