-- Where a key wants its events sent. types are separated by spaces; empty is all it may read.
-- Deliveries exist for the events up to position. The lease names the process that delivers.
CREATE TABLE webhooks (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key_id BIGINT NOT NULL REFERENCES api_keys (id),
    url TEXT NOT NULL,
    types TEXT NOT NULL,
    description TEXT,
    created_at BIGINT NOT NULL,
    enabled BIGINT NOT NULL CHECK (enabled IN (0, 1)),
    disabled_reason TEXT,
    secret_version BIGINT NOT NULL,
    previous_secret_ends_at BIGINT,
    position BIGINT NOT NULL,
    failing_since BIGINT,
    failures BIGINT NOT NULL,
    last_success_at BIGINT,
    leased_by TEXT,
    leased_until BIGINT
);

CREATE INDEX webhooks_by_key ON webhooks (key_id, id);

-- The events of a webhook, each with the outcome of its last attempt.
CREATE TABLE webhook_deliveries (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    webhook_id BIGINT NOT NULL,
    sequence BIGINT NOT NULL,
    event_id TEXT NOT NULL,
    type TEXT NOT NULL,
    resource TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'succeeded', 'failed')),
    created_at BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    first_attempt_at BIGINT,
    last_attempt_at BIGINT,
    response_status BIGINT,
    response_body TEXT,
    error TEXT
);

CREATE INDEX webhook_deliveries_by_webhook ON webhook_deliveries (webhook_id, id);
CREATE INDEX webhook_deliveries_pending ON webhook_deliveries (webhook_id, id) WHERE state = 'pending';
