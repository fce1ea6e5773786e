-- Both at once: later, a change of an order may hold what the next lock needs, and wait for this one.
LOCK TABLE pets IN SHARE ROW EXCLUSIVE MODE;
LOCK TABLE orders IN ACCESS EXCLUSIVE MODE;

-- How many animals there are of each status in each category: changes, each a row of its own, as in
-- the inventory. What has gathered of a category is summed up now and then.
CREATE TABLE category_inventory (
    category_id BIGINT NOT NULL,
    available BIGINT NOT NULL,
    pending BIGINT NOT NULL,
    sold BIGINT NOT NULL
);

INSERT INTO category_inventory
SELECT category_id, count(*) FILTER (WHERE status = 'available'),
    count(*) FILTER (WHERE status = 'pending'), count(*) FILTER (WHERE status = 'sold')
FROM pets WHERE status IS NOT NULL GROUP BY category_id;

CREATE INDEX category_inventory_by_category ON category_inventory (category_id);

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

-- What a sale leaves: buyer, note, price and times. buyer_key is the same for names that differ in
-- case and marks alone (domain/names.py). category_id is that of the animal at the time of delivery.
-- An order of an earlier version has the times that its events tell.
ALTER TABLE orders ADD COLUMN buyer TEXT;
ALTER TABLE orders ADD COLUMN buyer_key TEXT COLLATE "C";
ALTER TABLE orders ADD COLUMN note TEXT;
ALTER TABLE orders ADD COLUMN amount BIGINT;
ALTER TABLE orders ADD COLUMN currency TEXT;
ALTER TABLE orders ADD COLUMN approved_at BIGINT;
ALTER TABLE orders ADD COLUMN delivered_at BIGINT;
ALTER TABLE orders ADD COLUMN cancelled_at BIGINT;
ALTER TABLE orders ADD COLUMN cancel_reason TEXT;
ALTER TABLE orders ADD COLUMN category_id BIGINT;

UPDATE orders SET approved_at = known.approved_at, delivered_at = known.delivered_at,
    cancelled_at = known.cancelled_at
FROM (
    SELECT CAST(substr(resource, 7) AS BIGINT) AS id,
        max(at) FILTER (WHERE type = 'order.approved') AS approved_at,
        max(at) FILTER (WHERE type = 'order.delivered') AS delivered_at,
        max(at) FILTER (WHERE type IN ('order.cancelled', 'order.lapsed')) AS cancelled_at
    FROM events WHERE type IN ('order.approved', 'order.delivered', 'order.cancelled', 'order.lapsed')
    GROUP BY resource
) AS known
WHERE orders.id = known.id;

CREATE INDEX orders_by_buyer ON orders (buyer_key, id) WHERE buyer_key IS NOT NULL;
CREATE INDEX orders_by_placing ON orders (placed_at, id);

-- The sales, with all that their numbers need.
CREATE INDEX orders_by_delivery ON orders (delivered_at) INCLUDE (currency, amount, category_id)
    WHERE delivered_at IS NOT NULL;

-- Closed orders with something personal, by the time that they were closed.
CREATE INDEX orders_with_buyers ON orders ((
    CASE WHEN status IN ('delivered', 'cancelled') THEN coalesce(delivered_at, cancelled_at, placed_at) END
)) WHERE coalesce(buyer, note, cancel_reason) IS NOT NULL;

-- A process of an earlier version, which moves an order during an update, does not know its times.
-- Whoever knows them sets them with the status.
CREATE FUNCTION note_time_of_move() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE now_ms BIGINT := floor(extract(epoch FROM clock_timestamp()) * 1000);
BEGIN
    IF NEW.status = 'approved' AND NEW.approved_at IS NULL THEN
        NEW.approved_at := now_ms;
    ELSIF NEW.status = 'delivered' AND NEW.delivered_at IS NULL THEN
        NEW.delivered_at := now_ms;
        SELECT category_id INTO NEW.category_id FROM pets WHERE id = NEW.pet_id;
    ELSIF NEW.status = 'cancelled' AND NEW.cancelled_at IS NULL THEN
        NEW.cancelled_at := least(now_ms, OLD.reserved_until);
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER order_moved BEFORE UPDATE OF status ON orders
    FOR EACH ROW WHEN (OLD.status <> NEW.status) EXECUTE FUNCTION note_time_of_move();
