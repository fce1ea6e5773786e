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
-- does not know. The function sees the outbox as it was before the statement that empties it, since
-- it is STABLE.
CREATE FUNCTION recorded_author() RETURNS trigger LANGUAGE plpgsql STABLE AS $$
BEGIN
    SELECT actor, request_id INTO NEW.actor, NEW.request_id FROM events_outbox WHERE id = NEW.id;
    RETURN NEW;
END
$$;

CREATE TRIGGER event_published BEFORE INSERT ON events
    FOR EACH ROW WHEN (NEW.actor IS NULL) EXECUTE FUNCTION recorded_author();

-- Requests beyond a limit, by key, hour (UTC) and operation.
CREATE TABLE refused_requests (
    key_id BIGINT NOT NULL REFERENCES api_keys (id),
    hour BIGINT NOT NULL,
    operation TEXT NOT NULL,
    requests BIGINT NOT NULL,
    PRIMARY KEY (key_id, hour, operation)
);

CREATE INDEX refused_requests_by_hour ON refused_requests (hour, key_id);
