-- A session or link also ends with the token of the session that granted it, if that was of another
-- key. Each has a token of its own key: a link has the newest one, or that of its maker.
ALTER TABLE console_sessions ADD COLUMN granted_by BYTEA;
ALTER TABLE console_links ADD COLUMN token_digest BYTEA;
ALTER TABLE console_links ADD COLUMN granted_by BYTEA;

-- What marks the secrets of sessions and links as issued here. It has one row, from the first on.
CREATE TABLE console_seal (
    one BIGINT PRIMARY KEY CHECK (one = 1),
    secret BYTEA NOT NULL
);
