CREATE TABLE pets (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    category_id INTEGER NOT NULL,
    status TEXT CHECK (status IN ('available', 'pending', 'sold'))
) STRICT;

-- Every index ends in the rowid, so each filter reads its page in order of id.
CREATE INDEX pets_by_status ON pets (status);
CREATE INDEX pets_by_category ON pets (category_id);
CREATE INDEX pets_by_category_and_status ON pets (category_id, status);

CREATE TABLE pet_imports (
    digest BLOB PRIMARY KEY,
    rows_done INTEGER NOT NULL,
    finished_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE api_keys (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    plan TEXT NOT NULL CHECK (plan IN ('free', 'pro', 'business', 'enterprise')),
    per_minute INTEGER,
    per_day INTEGER,
    scopes TEXT NOT NULL,
    environment TEXT NOT NULL CHECK (environment IN ('production', 'staging')),
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER,
    pardoned_at INTEGER
) STRICT;

CREATE TABLE api_key_tokens (
    digest BLOB PRIMARY KEY,
    key_id INTEGER NOT NULL REFERENCES api_keys (id),
    expires_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX api_key_tokens_by_key ON api_key_tokens (key_id);

-- One row, counted up by every change to a key: how a running service notices.
CREATE TABLE api_key_revision (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    revision INTEGER NOT NULL
) STRICT;
INSERT INTO api_key_revision VALUES (1, 0);

CREATE TABLE rate_limits (
    key_id INTEGER PRIMARY KEY REFERENCES api_keys (id),
    minute_started INTEGER NOT NULL,
    minute_used INTEGER NOT NULL,
    day INTEGER NOT NULL,
    day_used INTEGER NOT NULL,
    refused_since INTEGER NOT NULL,
    refused_at INTEGER NOT NULL,
    strikes INTEGER NOT NULL,
    struck_since INTEGER NOT NULL,
    banned_at INTEGER NOT NULL,
    banned_until INTEGER NOT NULL,
    ban_level INTEGER NOT NULL,
    used_at INTEGER NOT NULL
) STRICT;

CREATE TABLE usage (
    key_id INTEGER NOT NULL REFERENCES api_keys (id),
    day INTEGER NOT NULL,
    requests INTEGER NOT NULL,
    PRIMARY KEY (key_id, day)
) STRICT, WITHOUT ROWID;
