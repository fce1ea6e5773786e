CREATE TABLE pets (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name TEXT NOT NULL,
    category_id BIGINT NOT NULL,
    status TEXT CHECK (status IN ('available', 'pending', 'sold'))
);

CREATE INDEX pets_by_status ON pets (status, id);
CREATE INDEX pets_by_category ON pets (category_id, id);
CREATE INDEX pets_by_category_and_status ON pets (category_id, status, id);

-- Where a search finds a pet by its name: a row for each beginning of a word, and for the whole
-- (databases/words.py). The queue has the items without those.
CREATE TABLE pet_words (
    term TEXT COLLATE "C" NOT NULL,
    item_id BIGINT NOT NULL,
    PRIMARY KEY (term, item_id)
);

CREATE TABLE pet_words_queue (item_id BIGINT PRIMARY KEY);

-- Changes of the counts by status, each a row of its own: no change waits for another. What has
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

-- How many pets there are of each status in each category: changes, each a row of its own, as in
-- the inventory. What has gathered of a category is summed up now and then.
CREATE TABLE category_inventory (
    category_id BIGINT NOT NULL,
    available BIGINT NOT NULL,
    pending BIGINT NOT NULL,
    sold BIGINT NOT NULL,
    id BIGINT GENERATED ALWAYS AS IDENTITY,
    PRIMARY KEY (category_id, id)
);

CREATE FUNCTION count_pet_of_category() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' AND OLD.category_id = NEW.category_id THEN
        INSERT INTO category_inventory VALUES (NEW.category_id,
            (NEW.status IS NOT DISTINCT FROM 'available')::INT - (OLD.status IS NOT DISTINCT FROM 'available')::INT,
            (NEW.status IS NOT DISTINCT FROM 'pending')::INT - (OLD.status IS NOT DISTINCT FROM 'pending')::INT,
            (NEW.status IS NOT DISTINCT FROM 'sold')::INT - (OLD.status IS NOT DISTINCT FROM 'sold')::INT);
    ELSE
        IF TG_OP <> 'INSERT' AND OLD.status IS NOT NULL THEN
            INSERT INTO category_inventory VALUES (OLD.category_id,
                -(OLD.status = 'available')::INT, -(OLD.status = 'pending')::INT, -(OLD.status = 'sold')::INT);
        END IF;
        IF TG_OP <> 'DELETE' AND NEW.status IS NOT NULL THEN
            INSERT INTO category_inventory VALUES (NEW.category_id,
                (NEW.status = 'available')::INT, (NEW.status = 'pending')::INT, (NEW.status = 'sold')::INT);
        END IF;
    END IF;
    IF random() < 0.05 THEN
        WITH gathered AS (
            DELETE FROM category_inventory WHERE ctid = ANY (ARRAY(
                SELECT ctid FROM category_inventory
                WHERE category_id = ANY (ARRAY[OLD.category_id, NEW.category_id])
                LIMIT 1000 FOR UPDATE SKIP LOCKED
            )) RETURNING *
        )
        INSERT INTO category_inventory
        SELECT category_id, sum(available), sum(pending), sum(sold) FROM gathered
        GROUP BY category_id HAVING sum(available) <> 0 OR sum(pending) <> 0 OR sum(sold) <> 0;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER pet_added_to_category AFTER INSERT ON pets
    FOR EACH ROW WHEN (NEW.status IS NOT NULL) EXECUTE FUNCTION count_pet_of_category();
CREATE TRIGGER pet_deleted_from_category AFTER DELETE ON pets
    FOR EACH ROW WHEN (OLD.status IS NOT NULL) EXECUTE FUNCTION count_pet_of_category();
CREATE TRIGGER pet_moved_to_category AFTER UPDATE OF status, category_id ON pets
    FOR EACH ROW WHEN (OLD.status IS DISTINCT FROM NEW.status OR OLD.category_id <> NEW.category_id)
    EXECUTE FUNCTION count_pet_of_category();

-- name_key is the same for names that differ in case alone.
CREATE TABLE categories (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name TEXT NOT NULL,
    name_key TEXT COLLATE "C" NOT NULL UNIQUE,
    description TEXT
);

-- An order outlives its pet. reserved_until is there while it is placed, if it can lapse. category_id
-- is that of the pet at the time of delivery.
CREATE TABLE orders (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    pet_id BIGINT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('placed', 'approved', 'delivered', 'returned', 'cancelled')),
    ship_date TEXT,
    placed_at BIGINT NOT NULL,
    reserved_until BIGINT,
    buyer TEXT,
    note TEXT,
    amount BIGINT,
    currency TEXT,
    approved_at BIGINT,
    delivered_at BIGINT,
    cancelled_at BIGINT,
    cancel_reason TEXT,
    returned_at BIGINT,
    return_reason TEXT,
    refund BIGINT,
    category_id BIGINT
);

-- Where a search finds an order by its buyer: a row for each beginning of a word, and for the whole
-- (databases/words.py). The queue has the items without those.
CREATE TABLE order_words (
    term TEXT COLLATE "C" NOT NULL,
    item_id BIGINT NOT NULL,
    PRIMARY KEY (term, item_id)
);

CREATE TABLE order_words_queue (item_id BIGINT PRIMARY KEY);

CREATE INDEX orders_by_status ON orders (status, id);
CREATE INDEX orders_by_pet ON orders (pet_id, id);
CREATE INDEX orders_by_pet_and_status ON orders (pet_id, status, id);
CREATE INDEX orders_by_end ON orders (reserved_until) WHERE reserved_until IS NOT NULL;
CREATE UNIQUE INDEX open_orders ON orders (pet_id) WHERE status IN ('placed', 'approved');
CREATE INDEX orders_by_placing ON orders (placed_at, id);

-- The sales and the returns, with all that their numbers need.
CREATE INDEX orders_by_delivery ON orders (delivered_at, id) INCLUDE (currency, amount, category_id)
    WHERE delivered_at IS NOT NULL;

CREATE INDEX orders_by_return ON orders (returned_at) INCLUDE (currency, refund, category_id)
    WHERE returned_at IS NOT NULL;

-- Closed orders with something personal, by the time that they were closed.
CREATE INDEX orders_with_buyers ON orders ((
    coalesce(returned_at, delivered_at, cancelled_at)
)) WHERE coalesce(buyer, note, cancel_reason, return_reason) IS NOT NULL;

-- Whoever calls: a key or a person. Their ids differ. seen_at is the last use of the console.
CREATE TABLE callers (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('key', 'person')),
    seen_at BIGINT
);

-- Networks are text, such as 203.0.113.0/24, separated by spaces; none is anywhere.
-- token_ends are the last four characters of each token, the newest first.
CREATE TABLE api_keys (
    id BIGINT PRIMARY KEY REFERENCES callers (id),
    name TEXT NOT NULL,
    plan TEXT NOT NULL CHECK (plan IN ('free', 'pro', 'business', 'enterprise')),
    per_minute BIGINT,
    per_day BIGINT,
    scopes TEXT NOT NULL,
    environment TEXT NOT NULL CHECK (environment IN ('production', 'staging')),
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    revoked_at BIGINT,
    unbanned_at BIGINT,
    allowed_networks TEXT NOT NULL DEFAULT '',
    token_ends TEXT NOT NULL DEFAULT ''
);

CREATE INDEX api_keys_by_environment ON api_keys (environment, id);

-- login_key is the same for logins that differ in case alone. password is a hash; an invited person has
-- none yet.
CREATE TABLE people (
    id BIGINT PRIMARY KEY REFERENCES callers (id),
    name TEXT NOT NULL,
    login TEXT NOT NULL,
    login_key TEXT NOT NULL UNIQUE,
    role TEXT NOT NULL,
    environment TEXT NOT NULL CHECK (environment IN ('production', 'staging')),
    created_at BIGINT NOT NULL,
    disabled_at BIGINT,
    password TEXT
);

CREATE INDEX people_by_environment ON people (environment, id);

CREATE TABLE api_key_tokens (
    digest BYTEA PRIMARY KEY,
    key_id BIGINT NOT NULL REFERENCES api_keys (id),
    expires_at BIGINT
);

CREATE INDEX api_key_tokens_by_key ON api_key_tokens (key_id);
CREATE INDEX api_key_tokens_by_end ON api_key_tokens (expires_at) WHERE expires_at IS NOT NULL;

-- One row, counted up by every change to a key: how a running service notices.
CREATE TABLE api_key_revision (
    one BIGINT PRIMARY KEY CHECK (one = 1),
    revision BIGINT NOT NULL
);

INSERT INTO api_key_revision VALUES (1, 0);

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

CREATE INDEX usage_by_day ON usage (day);

-- First responses to requests with an Idempotency-Key, each written with what it responds to.
CREATE TABLE idempotency_records (
    key_id BIGINT NOT NULL REFERENCES callers (id),
    idempotency_key TEXT NOT NULL,
    request BYTEA NOT NULL,
    answer BYTEA NOT NULL,
    kept_at BIGINT NOT NULL,
    PRIMARY KEY (key_id, idempotency_key)
);

CREATE INDEX idempotency_records_by_age ON idempotency_records (kept_at);

-- What changed, in the order of the commits. key_id is there if an event concerns one key alone; -1 and
-- -2 are the administrators of production and of staging, whose events are kept for longer. actor
-- caused it, such as key/3 or person/2.
CREATE TABLE events (
    sequence BIGINT PRIMARY KEY,
    id TEXT NOT NULL,
    type TEXT NOT NULL,
    at BIGINT NOT NULL,
    resource TEXT NOT NULL,
    key_id BIGINT,
    data TEXT NOT NULL,
    previous TEXT,
    actor TEXT NOT NULL,
    request_id TEXT
);

-- The history of a resource, what an actor did, and the events of administrators.
CREATE INDEX events_by_resource ON events (resource, sequence);
CREATE INDEX events_by_actor ON events (actor, sequence);
CREATE INDEX events_by_key ON events (key_id, sequence) WHERE key_id < 0;

-- Every event from this one on is kept; before it, only events of administrators are.
CREATE TABLE feed_start (
    one BIGINT PRIMARY KEY CHECK (one = 1),
    sequence BIGINT NOT NULL
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
    previous TEXT,
    actor TEXT NOT NULL,
    request_id TEXT
);

CREATE INDEX events_outbox_by_transaction ON events_outbox (transaction, position);

-- Where a key wants its events sent. environment is that of the key. types are separated by spaces; empty is all it may read.
-- Deliveries exist for the events up to position. The lease names the process that delivers. An endpoint
-- asks for a pause with Retry-After. A recovery, if one is under way, has looked at the events up to recovered_to.
CREATE TABLE webhooks (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key_id BIGINT NOT NULL REFERENCES callers (id),
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
    leased_until BIGINT,
    paused_until BIGINT,
    recovered_to BIGINT,
    environment TEXT NOT NULL
);

CREATE INDEX webhooks_by_key ON webhooks (key_id, id);
CREATE INDEX webhooks_by_environment ON webhooks (environment, id);
CREATE INDEX webhooks_failing ON webhooks (environment, id) WHERE failures >= 3 OR disabled_reason IS NOT NULL;

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

-- Which deliveries are due, and which one comes before another of the same resource.
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (webhook_id, due_at, id) WHERE state = 'pending';
CREATE INDEX webhook_deliveries_in_order ON webhook_deliveries (webhook_id, resource, id) WHERE state = 'pending';

-- Which delivery comes before another of the same resource. An index of its own condition: those of
-- pending deliveries are empty once all is delivered, and the planner believes so for a long time.
CREATE INDEX webhook_deliveries_waiting ON webhook_deliveries (webhook_id, resource, id)
    WHERE state NOT IN ('succeeded', 'failed');

-- The deliveries of an event to a webhook.
CREATE INDEX webhook_deliveries_by_event ON webhook_deliveries (sequence, webhook_id);

-- What keys did in an hour, or in the day that begins with it, and the latest request as JSON.
CREATE TABLE counts (
    kind TEXT NOT NULL,
    key_id BIGINT NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    hour BIGINT NOT NULL,
    count BIGINT NOT NULL,
    latest TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (kind, key_id, name, hour)
);

CREATE INDEX counts_by_hour ON counts (hour, kind, key_id);

-- What the owner of a key was told, once for each period.
CREATE TABLE key_notices (
    key_id BIGINT NOT NULL REFERENCES api_keys (id),
    notice TEXT NOT NULL,
    period BIGINT NOT NULL,
    noticed_at BIGINT NOT NULL,
    PRIMARY KEY (key_id, notice, period)
);

CREATE INDEX key_notices_by_age ON key_notices (noticed_at);

-- Who is signed in to the console. A row has the digest of the cookie, and that of the credential which
-- opened the session and with which it ends: the token of a key, or the hash of the password of a person.
CREATE TABLE console_sessions (
    digest BYTEA PRIMARY KEY,
    kind TEXT NOT NULL,
    caller_id BIGINT NOT NULL REFERENCES callers (id),
    credential BYTEA NOT NULL,
    device TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    used_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    stays BIGINT NOT NULL
);

CREATE INDEX console_sessions_by_end ON console_sessions (expires_at);
CREATE INDEX console_sessions_by_caller ON console_sessions (caller_id, used_at);

-- Links that set a password, once. They end with the
-- credential of the caller who made them, as sessions do; the operator has none.
CREATE TABLE invitations (
    digest BYTEA PRIMARY KEY,
    person_id BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    kind TEXT,
    caller_id BIGINT,
    credential BYTEA
);

CREATE INDEX invitations_by_end ON invitations (expires_at);
CREATE INDEX invitations_by_person ON invitations (person_id);

-- Files that callers import. settings are how the file is read, and found is what it has, both as JSON. The
-- first ``done`` of its ``records`` are behind the import, and those up to its header, ``start``, are no rows.
-- An undo has looked at deleted and kept ones of the added pets. The events of all runs have the request id of
-- the first. While a file is still being stored, it has no records, and done is -1.
CREATE TABLE imports (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    caller_id BIGINT NOT NULL REFERENCES callers (id),
    digest BYTEA NOT NULL,
    file_name TEXT NOT NULL,
    settings TEXT NOT NULL,
    preview TEXT NOT NULL DEFAULT '{}',
    records BIGINT NOT NULL DEFAULT 0,
    start BIGINT NOT NULL DEFAULT 0,
    done BIGINT NOT NULL DEFAULT 0,
    added BIGINT NOT NULL DEFAULT 0,
    deleted BIGINT NOT NULL DEFAULT 0,
    kept BIGINT NOT NULL DEFAULT 0,
    kept_pets TEXT NOT NULL DEFAULT '[]',
    run_request TEXT,
    undo_request TEXT,
    created_at BIGINT NOT NULL,
    touched_at BIGINT NOT NULL
);

CREATE INDEX imports_by_caller ON imports (caller_id, id);
CREATE INDEX imports_by_file ON imports (caller_id, digest);
CREATE INDEX imports_unfinished ON imports (caller_id) WHERE done < records AND undo_request IS NULL;
CREATE INDEX imports_by_age ON imports (touched_at);

-- A hundred records of a file, as JSON, by the number of the first. ``refused`` has the places of those that
-- were refused, and ``pets`` the pets that were added, as they were, and that no undo has looked at.
CREATE TABLE import_batches (
    import_id BIGINT NOT NULL REFERENCES imports (id) ON DELETE CASCADE,
    first BIGINT NOT NULL,
    records TEXT NOT NULL,
    refused TEXT NOT NULL DEFAULT '[]',
    pets TEXT NOT NULL DEFAULT '[]',
    PRIMARY KEY (import_id, first)
);
