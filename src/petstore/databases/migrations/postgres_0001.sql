CREATE TABLE pets (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name TEXT NOT NULL,
    category_id BIGINT NOT NULL,
    status TEXT CHECK (status IN ('available', 'pending', 'sold'))
);

CREATE INDEX pets_by_status ON pets (status, id);
CREATE INDEX pets_by_category ON pets (category_id, id);
CREATE INDEX pets_by_category_and_status ON pets (category_id, status, id);

-- Changes of the counts by status, each a row of its own: nobody waits for anybody. What has
-- gathered is summed up now and then.
CREATE TABLE inventory (
    status TEXT NOT NULL,
    pets BIGINT NOT NULL,
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY
);

CREATE FUNCTION count_pet() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' AND OLD.status IS NOT NULL THEN
        INSERT INTO inventory VALUES (OLD.status, -1);
    END IF;
    IF TG_OP <> 'DELETE' AND NEW.status IS NOT NULL THEN
        INSERT INTO inventory VALUES (NEW.status, 1);
    END IF;
    IF random() < 0.002 THEN
        WITH gathered AS (
            DELETE FROM inventory WHERE ctid IN (
                SELECT ctid FROM inventory LIMIT 5000 FOR UPDATE SKIP LOCKED
            ) RETURNING status, pets
        )
        INSERT INTO inventory SELECT status, sum(pets) FROM gathered GROUP BY status;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER pet_added AFTER INSERT ON pets FOR EACH ROW EXECUTE FUNCTION count_pet();
CREATE TRIGGER pet_deleted AFTER DELETE ON pets FOR EACH ROW EXECUTE FUNCTION count_pet();
CREATE TRIGGER pet_moved AFTER UPDATE OF status ON pets
    FOR EACH ROW WHEN (OLD.status IS DISTINCT FROM NEW.status) EXECUTE FUNCTION count_pet();

CREATE TABLE pet_imports (
    digest BYTEA PRIMARY KEY,
    rows_done BIGINT NOT NULL,
    finished_at BIGINT
);

CREATE TABLE categories (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name TEXT NOT NULL,
    name_key TEXT NOT NULL UNIQUE,
    description TEXT
);

CREATE TABLE orders (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    pet_id BIGINT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('placed', 'approved', 'delivered', 'cancelled')),
    ship_date TEXT,
    placed_at BIGINT NOT NULL,
    reserved_until BIGINT
);

CREATE INDEX orders_by_status ON orders (status, id);
CREATE INDEX orders_by_pet ON orders (pet_id, id);
CREATE INDEX orders_by_pet_and_status ON orders (pet_id, status, id);
CREATE INDEX orders_by_end ON orders (reserved_until) WHERE reserved_until IS NOT NULL;
CREATE UNIQUE INDEX open_orders ON orders (pet_id) WHERE status IN ('placed', 'approved');

CREATE TABLE api_keys (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name TEXT NOT NULL,
    plan TEXT NOT NULL CHECK (plan IN ('free', 'pro', 'business', 'enterprise')),
    per_minute BIGINT,
    per_day BIGINT,
    scopes TEXT NOT NULL,
    environment TEXT NOT NULL CHECK (environment IN ('production', 'staging')),
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    revoked_at BIGINT,
    pardoned_at BIGINT
);

CREATE TABLE api_key_tokens (
    digest BYTEA PRIMARY KEY,
    key_id BIGINT NOT NULL REFERENCES api_keys (id),
    expires_at BIGINT
);

CREATE INDEX api_key_tokens_by_key ON api_key_tokens (key_id);

CREATE TABLE api_key_revision (
    one BIGINT PRIMARY KEY CHECK (one = 1),
    revision BIGINT NOT NULL
);
INSERT INTO api_key_revision VALUES (1, 0);

CREATE TABLE api_key_events (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key_id BIGINT NOT NULL REFERENCES api_keys (id),
    at BIGINT NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    changes TEXT NOT NULL
);

CREATE INDEX api_key_events_by_key ON api_key_events (key_id, id);

CREATE TABLE rate_limits (
    key_id BIGINT PRIMARY KEY REFERENCES api_keys (id),
    minute_started BIGINT NOT NULL,
    minute_used BIGINT NOT NULL,
    day BIGINT NOT NULL,
    day_used BIGINT NOT NULL,
    refused_since BIGINT NOT NULL,
    refused_at BIGINT NOT NULL,
    strikes BIGINT NOT NULL,
    struck_since BIGINT NOT NULL,
    banned_at BIGINT NOT NULL,
    banned_until BIGINT NOT NULL,
    ban_level BIGINT NOT NULL,
    used_at BIGINT NOT NULL
);

CREATE TABLE usage (
    key_id BIGINT NOT NULL REFERENCES api_keys (id),
    day BIGINT NOT NULL,
    requests BIGINT NOT NULL,
    PRIMARY KEY (key_id, day)
);

CREATE TABLE kept_answers (
    key_id BIGINT NOT NULL REFERENCES api_keys (id),
    idempotency_key TEXT NOT NULL,
    request BYTEA NOT NULL,
    answer BYTEA NOT NULL,
    kept_at BIGINT NOT NULL,
    PRIMARY KEY (key_id, idempotency_key)
);

CREATE INDEX kept_answers_by_age ON kept_answers (kept_at);
