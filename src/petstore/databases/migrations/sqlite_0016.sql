-- What a sale leaves: buyer, note, price and times. buyer_key is the same for names that differ in
-- case and marks alone (domain/names.py). category_id is that of the animal at the time of delivery.
-- An order of an earlier version has the times that its events tell.
ALTER TABLE orders ADD COLUMN buyer TEXT;
ALTER TABLE orders ADD COLUMN buyer_key TEXT;
ALTER TABLE orders ADD COLUMN note TEXT;
ALTER TABLE orders ADD COLUMN amount INTEGER;
ALTER TABLE orders ADD COLUMN currency TEXT;
ALTER TABLE orders ADD COLUMN approved_at INTEGER;
ALTER TABLE orders ADD COLUMN delivered_at INTEGER;
ALTER TABLE orders ADD COLUMN cancelled_at INTEGER;
ALTER TABLE orders ADD COLUMN cancel_reason TEXT;
ALTER TABLE orders ADD COLUMN category_id INTEGER;

UPDATE orders SET approved_at = known.approved_at, delivered_at = known.delivered_at,
    cancelled_at = known.cancelled_at
FROM (
    SELECT CAST(substr(resource, 7) AS INTEGER) AS id,
        max(at) FILTER (WHERE type = 'order.approved') AS approved_at,
        max(at) FILTER (WHERE type = 'order.delivered') AS delivered_at,
        max(at) FILTER (WHERE type IN ('order.cancelled', 'order.lapsed')) AS cancelled_at
    FROM events WHERE type IN ('order.approved', 'order.delivered', 'order.cancelled', 'order.lapsed')
    GROUP BY resource
) AS known
WHERE orders.id = known.id;

CREATE INDEX orders_by_buyer ON orders (buyer_key) WHERE buyer_key IS NOT NULL;
CREATE INDEX orders_by_placing ON orders (placed_at);

-- The sales, with all that their numbers need.
CREATE INDEX orders_by_delivery ON orders (delivered_at, currency, amount, category_id)
    WHERE delivered_at IS NOT NULL;

-- Closed orders with something personal, by the time that they were closed.
CREATE INDEX orders_with_buyers ON orders (
    CASE WHEN status IN ('delivered', 'cancelled') THEN coalesce(delivered_at, cancelled_at, placed_at) END
) WHERE coalesce(buyer, note, cancel_reason) IS NOT NULL;

-- A process of an earlier version, which moves an order during an update, does not know its times.
-- Whoever knows them sets them with the status.
CREATE TRIGGER order_moved AFTER UPDATE OF status ON orders WHEN OLD.status <> NEW.status AND (
    CASE NEW.status WHEN 'approved' THEN NEW.approved_at WHEN 'delivered' THEN NEW.delivered_at
        ELSE NEW.cancelled_at END
) IS NULL
BEGIN
    UPDATE orders SET
        approved_at = CASE WHEN NEW.status = 'approved'
            THEN CAST(unixepoch('subsec') * 1000 AS INTEGER) ELSE approved_at END,
        delivered_at = CASE WHEN NEW.status = 'delivered'
            THEN CAST(unixepoch('subsec') * 1000 AS INTEGER) END,
        cancelled_at = CASE WHEN NEW.status = 'cancelled'
            THEN min(CAST(unixepoch('subsec') * 1000 AS INTEGER),
                coalesce(OLD.reserved_until, CAST(unixepoch('subsec') * 1000 AS INTEGER))) END,
        category_id = CASE WHEN NEW.status = 'delivered'
            THEN (SELECT category_id FROM pets WHERE id = NEW.pet_id) END
    WHERE id = NEW.id;
END;

-- How many animals there are of each status in each category, kept by triggers like the inventory.
CREATE TABLE category_inventory (
    category_id INTEGER PRIMARY KEY,
    available INTEGER NOT NULL,
    pending INTEGER NOT NULL,
    sold INTEGER NOT NULL
) STRICT;

INSERT INTO category_inventory
SELECT category_id, sum(status = 'available'), sum(status = 'pending'), sum(status = 'sold')
FROM pets WHERE status IS NOT NULL GROUP BY category_id;

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
