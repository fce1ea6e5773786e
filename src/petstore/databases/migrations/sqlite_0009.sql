-- Who is signed in to the console. A row has the digest of the cookie, never the cookie. The digest
-- of the token that the person signed in with ends the session with the token; a link has none.
CREATE TABLE console_sessions (
    digest BLOB PRIMARY KEY,
    key_id INTEGER NOT NULL REFERENCES api_keys (id),
    token_digest BLOB,
    created_at INTEGER NOT NULL,
    used_at INTEGER NOT NULL,
    notice TEXT NOT NULL DEFAULT ''
) STRICT, WITHOUT ROWID;

CREATE INDEX console_sessions_by_use ON console_sessions (used_at);
CREATE INDEX console_sessions_by_key ON console_sessions (key_id, used_at);

-- Links that sign a person in, once.
CREATE TABLE console_links (
    digest BLOB PRIMARY KEY,
    key_id INTEGER NOT NULL REFERENCES api_keys (id),
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX console_links_by_end ON console_links (expires_at);
