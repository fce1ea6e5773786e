-- Where a key wants its events sent. types are separated by spaces; empty is all it may read.
-- Deliveries exist for the events up to position. The lease names the process that delivers.
CREATE TABLE webhooks (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    key_id INTEGER NOT NULL REFERENCES api_keys (id),
    url TEXT NOT NULL,
    types TEXT NOT NULL,
    description TEXT,
    created_at INTEGER NOT NULL,
    enabled INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    disabled_reason TEXT,
    secret_version INTEGER NOT NULL,
    previous_secret_ends_at INTEGER,
    position INTEGER NOT NULL,
    failing_since INTEGER,
    failures INTEGER NOT NULL,
    last_success_at INTEGER,
    leased_by TEXT,
    leased_until INTEGER
) STRICT;

CREATE INDEX webhooks_by_key ON webhooks (key_id);

-- The events of a webhook, each with the outcome of its last attempt.
CREATE TABLE webhook_deliveries (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    webhook_id INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    event_id TEXT NOT NULL,
    type TEXT NOT NULL,
    resource TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'succeeded', 'failed')),
    created_at INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    first_attempt_at INTEGER,
    last_attempt_at INTEGER,
    response_status INTEGER,
    response_body TEXT,
    error TEXT
) STRICT;

CREATE INDEX webhook_deliveries_by_webhook ON webhook_deliveries (webhook_id);
CREATE INDEX webhook_deliveries_pending ON webhook_deliveries (webhook_id, id) WHERE state = 'pending';
