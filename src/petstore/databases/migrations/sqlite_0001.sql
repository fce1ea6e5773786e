-- For more than two values, IN would build a table of them for each row that is written.
CREATE TABLE pets (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    category_id INTEGER NOT NULL,
    status TEXT CHECK (status = 'available' OR status = 'pending' OR status = 'sold')
) STRICT;

-- Every index ends in the rowid, so each filter reads its page in order of id.
CREATE INDEX pets_by_status ON pets (status);
CREATE INDEX pets_by_category ON pets (category_id);
CREATE INDEX pets_by_category_and_status ON pets (category_id, status);

-- Where a search finds a pet by its name: the beginnings of its words, and the whole (databases/words.py).
-- The queue has the items without those.
-- A term is what is between two spaces, whatever else it has. Deleted ones are overwritten.
CREATE VIRTUAL TABLE pet_words USING fts5 (
    terms,
    columnsize = 0,
    detail = none,
    tokenize = "ascii tokenchars '!""#$%&''()*+,-./:;<=>?@[\]^_`{|}~'"
);

INSERT INTO pet_words (pet_words, rank) VALUES ('secure-delete', 1), ('automerge', 0);

CREATE TABLE pet_words_queue (item_id INTEGER PRIMARY KEY) STRICT;

-- How many pets there are of each status, kept by triggers: nobody counts the table.
CREATE TABLE inventory (
    status TEXT PRIMARY KEY,
    pets INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO inventory VALUES ('available', 0), ('pending', 0), ('sold', 0);

CREATE TRIGGER pet_added AFTER INSERT ON pets WHEN NEW.status IS NOT NULL
BEGIN
    UPDATE inventory SET pets = pets + 1 WHERE status = NEW.status;
END;

CREATE TRIGGER pet_moved AFTER UPDATE OF status ON pets WHEN OLD.status IS NOT NEW.status
BEGIN
    UPDATE inventory SET pets = pets - 1 WHERE status = OLD.status;
    UPDATE inventory SET pets = pets + 1 WHERE status = NEW.status;
END;

CREATE TRIGGER pet_deleted AFTER DELETE ON pets WHEN OLD.status IS NOT NULL
BEGIN
    UPDATE inventory SET pets = pets - 1 WHERE status = OLD.status;
END;

-- How many pets there are of each status in each category, kept by triggers like the inventory.
CREATE TABLE category_inventory (
    category_id INTEGER PRIMARY KEY,
    available INTEGER NOT NULL,
    pending INTEGER NOT NULL,
    sold INTEGER NOT NULL
) STRICT;

CREATE TRIGGER pet_added_to_category AFTER INSERT ON pets WHEN NEW.status IS NOT NULL
BEGIN
    INSERT INTO category_inventory VALUES (
        NEW.category_id, NEW.status = 'available', NEW.status = 'pending', NEW.status = 'sold'
    ) ON CONFLICT DO UPDATE SET
        available = available + excluded.available,
        pending = pending + excluded.pending,
        sold = sold + excluded.sold;
END;

-- From one status to another, as with each order.
CREATE TRIGGER pet_moved_in_category AFTER UPDATE OF status ON pets
WHEN OLD.status <> NEW.status AND OLD.category_id = NEW.category_id
BEGIN
    UPDATE category_inventory SET
        available = available + (NEW.status = 'available') - (OLD.status = 'available'),
        pending = pending + (NEW.status = 'pending') - (OLD.status = 'pending'),
        sold = sold + (NEW.status = 'sold') - (OLD.status = 'sold')
    WHERE category_id = NEW.category_id;
END;

CREATE TRIGGER pet_changed_category AFTER UPDATE OF status, category_id ON pets
WHEN OLD.category_id <> NEW.category_id OR (OLD.status IS NULL) <> (NEW.status IS NULL)
BEGIN
    UPDATE category_inventory SET
        available = available - (OLD.status = 'available'),
        pending = pending - (OLD.status = 'pending'),
        sold = sold - (OLD.status = 'sold')
    WHERE category_id = OLD.category_id AND OLD.status IS NOT NULL;
    DELETE FROM category_inventory
        WHERE category_id = OLD.category_id AND available = 0 AND pending = 0 AND sold = 0;
    INSERT INTO category_inventory
        SELECT NEW.category_id, NEW.status = 'available', NEW.status = 'pending', NEW.status = 'sold'
        WHERE NEW.status IS NOT NULL
        ON CONFLICT DO UPDATE SET
            available = available + excluded.available,
            pending = pending + excluded.pending,
            sold = sold + excluded.sold;
END;

CREATE TRIGGER pet_deleted_from_category AFTER DELETE ON pets WHEN OLD.status IS NOT NULL
BEGIN
    UPDATE category_inventory SET
        available = available - (OLD.status = 'available'),
        pending = pending - (OLD.status = 'pending'),
        sold = sold - (OLD.status = 'sold')
    WHERE category_id = OLD.category_id;
    DELETE FROM category_inventory
        WHERE category_id = OLD.category_id AND available = 0 AND pending = 0 AND sold = 0;
END;

-- Whoever calls: a key or a person. Their ids differ. seen_at is the last use of the console.
CREATE TABLE callers (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL CHECK (kind IN ('key', 'person')),
    seen_at INTEGER
) STRICT;

-- Networks are text, such as 203.0.113.0/24, separated by spaces; none is anywhere.
-- token_ends are the last four characters of each token, the newest first.
CREATE TABLE api_keys (
    id INTEGER PRIMARY KEY REFERENCES callers (id),
    name TEXT NOT NULL,
    plan TEXT NOT NULL CHECK (plan IN ('free', 'pro', 'business', 'enterprise')),
    per_minute INTEGER,
    per_day INTEGER,
    scopes TEXT NOT NULL,
    environment TEXT NOT NULL CHECK (environment IN ('production', 'staging')),
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER,
    unbanned_at INTEGER,
    allowed_networks TEXT NOT NULL DEFAULT '',
    token_ends TEXT NOT NULL DEFAULT ''
) STRICT;

CREATE INDEX api_keys_by_environment ON api_keys (environment);

-- login_key is the same for logins that differ in case alone. password is a hash; an invited person has
-- none yet.
CREATE TABLE people (
    id INTEGER PRIMARY KEY REFERENCES callers (id),
    name TEXT NOT NULL,
    login TEXT NOT NULL,
    login_key TEXT NOT NULL UNIQUE,
    role TEXT NOT NULL,
    environment TEXT NOT NULL CHECK (environment IN ('production', 'staging')),
    created_at INTEGER NOT NULL,
    disabled_at INTEGER,
    password TEXT
) STRICT;

CREATE INDEX people_by_environment ON people (environment);

CREATE TABLE api_key_tokens (
    digest BLOB PRIMARY KEY,
    key_id INTEGER NOT NULL REFERENCES api_keys (id),
    expires_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX api_key_tokens_by_key ON api_key_tokens (key_id);
CREATE INDEX api_key_tokens_by_end ON api_key_tokens (expires_at) WHERE expires_at IS NOT NULL;

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

CREATE INDEX usage_by_day ON usage (day);

-- name_key is the same for names that differ in case alone.
CREATE TABLE categories (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    name_key TEXT NOT NULL UNIQUE,
    description TEXT
) STRICT;

-- An order outlives its pet. reserved_until is there while it is placed, if it can lapse. category_id
-- is that of the pet at the time of delivery.
CREATE TABLE orders (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    pet_id INTEGER NOT NULL,
    status TEXT NOT NULL CHECK (
        status = 'placed' OR status = 'approved' OR status = 'delivered' OR status = 'returned'
        OR status = 'cancelled'
    ),
    ship_date TEXT,
    placed_at INTEGER NOT NULL,
    reserved_until INTEGER,
    buyer TEXT,
    note TEXT,
    amount INTEGER,
    currency TEXT,
    approved_at INTEGER,
    delivered_at INTEGER,
    cancelled_at INTEGER,
    cancel_reason TEXT,
    returned_at INTEGER,
    return_reason TEXT,
    refund INTEGER,
    category_id INTEGER
) STRICT;

CREATE INDEX orders_by_status ON orders (status);
CREATE INDEX orders_by_pet ON orders (pet_id);
CREATE INDEX orders_by_pet_and_status ON orders (pet_id, status);
CREATE INDEX orders_by_end ON orders (reserved_until) WHERE reserved_until IS NOT NULL;
CREATE INDEX orders_by_placing ON orders (placed_at);

-- Where a search finds an order by its buyer: the beginnings of its words, and the whole (databases/words.py).
-- The queue has the items without those.
CREATE VIRTUAL TABLE order_words USING fts5 (
    terms,
    columnsize = 0,
    detail = none,
    tokenize = "ascii tokenchars '!""#$%&''()*+,-./:;<=>?@[\]^_`{|}~'"
);

INSERT INTO order_words (order_words, rank) VALUES ('secure-delete', 1), ('automerge', 0);

CREATE TABLE order_words_queue (item_id INTEGER PRIMARY KEY) STRICT;

-- One pet, one buyer: the database itself refuses a second.
CREATE UNIQUE INDEX open_orders ON orders (pet_id) WHERE status IN ('placed', 'approved');

-- The sales and the returns, with all that their numbers need.
CREATE INDEX orders_by_delivery ON orders (delivered_at, id, currency, amount, category_id)
    WHERE delivered_at IS NOT NULL;

CREATE INDEX orders_by_return ON orders (returned_at, currency, refund, category_id)
    WHERE returned_at IS NOT NULL;

-- Closed orders with something personal, by the time that they were closed.
CREATE INDEX orders_with_buyers ON orders (
    coalesce(returned_at, delivered_at, cancelled_at)
) WHERE coalesce(buyer, note, cancel_reason, return_reason) IS NOT NULL;

-- First responses to requests with an Idempotency-Key, each written with what it responds to.
CREATE TABLE idempotency_records (
    key_id INTEGER NOT NULL REFERENCES callers (id),
    idempotency_key TEXT NOT NULL,
    request BLOB NOT NULL,
    answer BLOB NOT NULL,
    kept_at INTEGER NOT NULL,
    PRIMARY KEY (key_id, idempotency_key)
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotency_records_by_age ON idempotency_records (kept_at);

-- What changed, in the order of the commits. key_id is there if an event concerns one key alone; -1 and
-- -2 are the administrators of production and of staging, whose events are kept for longer. actor
-- caused it, such as key/3 or person/2.
CREATE TABLE events (
    sequence INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    type TEXT NOT NULL,
    at INTEGER NOT NULL,
    resource TEXT NOT NULL,
    key_id INTEGER,
    data TEXT NOT NULL,
    previous TEXT,
    actor TEXT NOT NULL,
    request_id TEXT
) STRICT;

-- The history of a resource, what an actor did, and the events of administrators.
CREATE INDEX events_by_resource ON events (resource);
CREATE INDEX events_by_actor ON events (actor);
CREATE INDEX events_by_key ON events (key_id) WHERE key_id < 0;

-- Every event from this one on is kept; before it, only events of administrators are.
CREATE TABLE feed_start (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    sequence INTEGER NOT NULL
) STRICT;

-- Where a key wants its events sent. environment is that of the key. types are separated by spaces; empty is all it may read.
-- Deliveries exist for the events up to position. The lease names the process that delivers. An endpoint
-- asks for a pause with Retry-After. A recovery, if one is under way, has looked at the events up to recovered_to.
CREATE TABLE webhooks (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    key_id INTEGER NOT NULL REFERENCES callers (id),
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
    leased_until INTEGER,
    paused_until INTEGER,
    recovered_to INTEGER,
    environment TEXT NOT NULL
) STRICT;

CREATE INDEX webhooks_by_key ON webhooks (key_id);
CREATE INDEX webhooks_by_environment ON webhooks (environment);
CREATE INDEX webhooks_failing ON webhooks (environment) WHERE failures >= 3 OR disabled_reason IS NOT NULL;

-- The events of a webhook, each with the outcome of its last attempt.
CREATE TABLE webhook_deliveries (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    webhook_id INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    event_id TEXT NOT NULL,
    type TEXT NOT NULL,
    resource TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state = 'pending' OR state = 'succeeded' OR state = 'failed'),
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

-- Which deliveries are due, and which one comes before another of the same resource.
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (webhook_id, due_at, id) WHERE state = 'pending';
CREATE INDEX webhook_deliveries_in_order ON webhook_deliveries (webhook_id, resource, id) WHERE state = 'pending';

-- The deliveries of an event to a webhook.
CREATE INDEX webhook_deliveries_by_event ON webhook_deliveries (sequence, webhook_id);

-- What keys did in an hour, or in the day that begins with it, and the latest request as JSON.
CREATE TABLE counts (
    kind TEXT NOT NULL,
    key_id INTEGER NOT NULL,
    name TEXT NOT NULL,
    hour INTEGER NOT NULL,
    count INTEGER NOT NULL,
    latest TEXT NOT NULL,
    PRIMARY KEY (kind, key_id, name, hour)
) STRICT, WITHOUT ROWID;

CREATE INDEX counts_by_hour ON counts (hour, kind, key_id);

-- What the owner of a key was told, once for each period.
CREATE TABLE key_notices (
    key_id INTEGER NOT NULL REFERENCES api_keys (id),
    notice TEXT NOT NULL,
    period INTEGER NOT NULL,
    noticed_at INTEGER NOT NULL,
    PRIMARY KEY (key_id, notice, period)
) STRICT, WITHOUT ROWID;

CREATE INDEX key_notices_by_age ON key_notices (noticed_at);

-- Who is signed in to the console. A row has the digest of the cookie, and that of the credential which
-- opened the session and with which it ends: the token of a key, or the hash of the password of a person.
CREATE TABLE console_sessions (
    digest BLOB PRIMARY KEY,
    kind TEXT NOT NULL,
    caller_id INTEGER NOT NULL REFERENCES callers (id),
    credential BLOB NOT NULL,
    device TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    used_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    stays INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX console_sessions_by_end ON console_sessions (expires_at);
CREATE INDEX console_sessions_by_caller ON console_sessions (caller_id, used_at);

-- Links that set a password, once. They end with the
-- credential of the caller who made them, as sessions do; the operator has none.
CREATE TABLE invitations (
    digest BLOB PRIMARY KEY,
    person_id INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    kind TEXT,
    caller_id INTEGER,
    credential BLOB
) STRICT, WITHOUT ROWID;

CREATE INDEX invitations_by_end ON invitations (expires_at);
CREATE INDEX invitations_by_person ON invitations (person_id);

-- Files that callers import. settings are how the file is read, and found is what it has, both as JSON. The
-- first ``done`` of its ``records`` are behind the import, and those up to its header, ``start``, are no rows.
-- An undo has looked at deleted and kept ones of the added pets. The events of all runs have the request id of
-- the first. While a file is still being stored, it has no records, and done is -1.
CREATE TABLE imports (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    caller_id INTEGER NOT NULL REFERENCES callers (id),
    digest BLOB NOT NULL,
    file_name TEXT NOT NULL,
    settings TEXT NOT NULL,
    preview TEXT NOT NULL DEFAULT '{}',
    records INTEGER NOT NULL DEFAULT 0,
    start INTEGER NOT NULL DEFAULT 0,
    done INTEGER NOT NULL DEFAULT 0,
    added INTEGER NOT NULL DEFAULT 0,
    deleted INTEGER NOT NULL DEFAULT 0,
    kept INTEGER NOT NULL DEFAULT 0,
    kept_pets TEXT NOT NULL DEFAULT '[]',
    run_request TEXT,
    undo_request TEXT,
    created_at INTEGER NOT NULL,
    touched_at INTEGER NOT NULL
) STRICT;

CREATE INDEX imports_by_caller ON imports (caller_id, id);
CREATE INDEX imports_by_file ON imports (caller_id, digest);
CREATE INDEX imports_unfinished ON imports (caller_id) WHERE done < records AND undo_request IS NULL;
CREATE INDEX imports_by_age ON imports (touched_at);

-- A hundred records of a file, as JSON, by the number of the first. ``refused`` has the places of those that
-- were refused, and ``pets`` the pets that were added, as they were, and that no undo has looked at.
CREATE TABLE import_batches (
    import_id INTEGER NOT NULL REFERENCES imports (id) ON DELETE CASCADE,
    first INTEGER NOT NULL,
    records TEXT NOT NULL,
    refused TEXT NOT NULL DEFAULT '[]',
    pets TEXT NOT NULL DEFAULT '[]',
    PRIMARY KEY (import_id, first)
) STRICT;
