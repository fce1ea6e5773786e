-- How many animals there are of each status, kept by triggers: nobody counts the table.
CREATE TABLE inventory (
    status TEXT PRIMARY KEY,
    pets INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO inventory
SELECT 'available', count(*) FROM pets WHERE status = 'available' UNION ALL
SELECT 'pending', count(*) FROM pets WHERE status = 'pending' UNION ALL
SELECT 'sold', count(*) FROM pets WHERE status = 'sold';

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

-- name_key is the same for names that differ in case alone.
CREATE TABLE categories (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    name_key TEXT NOT NULL UNIQUE,
    description TEXT
) STRICT;

-- An order outlives its animal. reserved_until is there while it is placed, if it can lapse.
CREATE TABLE orders (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    pet_id INTEGER NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('placed', 'approved', 'delivered', 'cancelled')),
    ship_date TEXT,
    placed_at INTEGER NOT NULL,
    reserved_until INTEGER
) STRICT;

CREATE INDEX orders_by_status ON orders (status);
CREATE INDEX orders_by_pet ON orders (pet_id);
CREATE INDEX orders_by_pet_and_status ON orders (pet_id, status);
CREATE INDEX orders_by_end ON orders (reserved_until) WHERE reserved_until IS NOT NULL;

-- One animal, one buyer: the database itself refuses a second.
CREATE UNIQUE INDEX open_orders ON orders (pet_id) WHERE status IN ('placed', 'approved');

-- Every change to a key; changes is JSON.
CREATE TABLE api_key_events (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    key_id INTEGER NOT NULL REFERENCES api_keys (id),
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    changes TEXT NOT NULL
) STRICT;

CREATE INDEX api_key_events_by_key ON api_key_events (key_id);

CREATE INDEX api_keys_by_environment ON api_keys (environment);

-- First answers to requests with an Idempotency-Key, each written with what it answers.
CREATE TABLE kept_answers (
    key_id INTEGER NOT NULL REFERENCES api_keys (id),
    idempotency_key TEXT NOT NULL,
    request BLOB NOT NULL,
    answer BLOB NOT NULL,
    kept_at INTEGER NOT NULL,
    PRIMARY KEY (key_id, idempotency_key)
) STRICT, WITHOUT ROWID;

CREATE INDEX kept_answers_by_age ON kept_answers (kept_at);
