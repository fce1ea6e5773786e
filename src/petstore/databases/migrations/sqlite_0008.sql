-- Which deliveries are due, and which one comes before another of the same resource.
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (webhook_id, due_at, id) WHERE state = 'pending';
CREATE INDEX webhook_deliveries_in_order ON webhook_deliveries (webhook_id, resource, id) WHERE state = 'pending';

-- Until when an endpoint asked us to wait (Retry-After).
ALTER TABLE webhooks ADD COLUMN paused_until INTEGER;
