-- A person is a caller, as a key is, and so a row of api_keys: one with a role and without scopes,
-- which processes of an earlier version take for a key that may do nothing. seen_at is the last use
-- of the console.
ALTER TABLE api_keys ADD COLUMN role TEXT;
ALTER TABLE api_keys ADD COLUMN seen_at BIGINT;

-- What a person has beyond any caller. login_key is the same for logins that differ in case alone.
-- password is a hash; an invited person has none yet.
CREATE TABLE people (
    id BIGINT PRIMARY KEY REFERENCES api_keys (id),
    login TEXT NOT NULL,
    login_key TEXT NOT NULL UNIQUE,
    password TEXT
);

-- The browser of a session, and whether it stays signed in.
ALTER TABLE console_sessions ADD COLUMN device TEXT NOT NULL DEFAULT '';
ALTER TABLE console_sessions ADD COLUMN stays BIGINT NOT NULL DEFAULT 0;

-- An invitation sets a password; other links sign in.
ALTER TABLE console_links ADD COLUMN purpose TEXT NOT NULL DEFAULT 'sign_in';

-- Who caused an event, such as key/3 or person/2, and the request that did.
ALTER TABLE events ADD COLUMN actor TEXT;
ALTER TABLE events ADD COLUMN request_id TEXT;
ALTER TABLE events_outbox ADD COLUMN actor TEXT;
ALTER TABLE events_outbox ADD COLUMN request_id TEXT;

-- The history of a resource.
CREATE INDEX events_by_resource ON events (resource, sequence);

-- A process of an earlier version, which publishes during an update, leaves out the columns that it
-- does not know. They are taken from the outbox as it empties, all at once: one after another, each
-- would be searched for.
CREATE FUNCTION keep_authors() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT actor FROM events ORDER BY sequence DESC LIMIT 1) IS NULL THEN
        UPDATE events e SET actor = p.actor, request_id = p.request_id FROM published p
        WHERE e.sequence > (SELECT max(sequence) FROM events) - (SELECT count(*) FROM published)
        AND e.id = p.id AND e.actor IS NULL AND p.actor IS NOT NULL;
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER events_published AFTER DELETE ON events_outbox
    REFERENCING OLD TABLE AS published FOR EACH STATEMENT EXECUTE FUNCTION keep_authors();

-- Requests beyond a limit, by key, hour (UTC) and operation.
CREATE TABLE refused_requests (
    key_id BIGINT NOT NULL REFERENCES api_keys (id),
    hour BIGINT NOT NULL,
    operation TEXT NOT NULL,
    requests BIGINT NOT NULL,
    PRIMARY KEY (key_id, hour, operation)
);

CREATE INDEX refused_requests_by_hour ON refused_requests (hour, key_id);
