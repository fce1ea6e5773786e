-- A person is a caller, as a key is, and so a row of api_keys: one with a role and without scopes,
-- which processes of an earlier version take for a key that may do nothing. seen_at is the last use
-- of the console.
ALTER TABLE api_keys ADD COLUMN role TEXT;
ALTER TABLE api_keys ADD COLUMN seen_at INTEGER;

-- What a person has beyond any caller. login_key is the same for logins that differ in case alone.
-- password is a hash; an invited person has none yet.
CREATE TABLE people (
    id INTEGER PRIMARY KEY REFERENCES api_keys (id),
    login TEXT NOT NULL,
    login_key TEXT NOT NULL UNIQUE,
    password TEXT
) STRICT;

-- The browser of a session, and whether it stays signed in.
ALTER TABLE console_sessions ADD COLUMN device TEXT NOT NULL DEFAULT '';
ALTER TABLE console_sessions ADD COLUMN stays INTEGER NOT NULL DEFAULT 0;

-- An invitation sets a password; other links sign in.
ALTER TABLE console_links ADD COLUMN purpose TEXT NOT NULL DEFAULT 'sign_in';

-- Who caused an event, such as key/3 or person/2, and the request that did.
ALTER TABLE events ADD COLUMN actor TEXT;
ALTER TABLE events ADD COLUMN request_id TEXT;

-- The events of each resource, up to the sequence in the row without a resource. Events come here
-- soon after their commit: a change must not pay for one more index.
CREATE TABLE event_resources (
    resource TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    PRIMARY KEY (resource, sequence)
) STRICT, WITHOUT ROWID;

INSERT INTO event_resources (resource, sequence)
    SELECT resource, sequence FROM events ORDER BY resource, sequence;
INSERT INTO event_resources (resource, sequence)
    SELECT '', sequence FROM events ORDER BY sequence DESC LIMIT 1;

CREATE TRIGGER event_deleted AFTER DELETE ON events
BEGIN
    DELETE FROM event_resources WHERE resource = OLD.resource AND sequence = OLD.sequence;
END;

-- Requests beyond a limit, by key, hour (UTC) and operation.
CREATE TABLE refused_requests (
    key_id INTEGER NOT NULL REFERENCES api_keys (id),
    hour INTEGER NOT NULL,
    operation TEXT NOT NULL,
    requests INTEGER NOT NULL,
    PRIMARY KEY (key_id, hour, operation)
) STRICT, WITHOUT ROWID;

CREATE INDEX refused_requests_by_hour ON refused_requests (hour, key_id);
