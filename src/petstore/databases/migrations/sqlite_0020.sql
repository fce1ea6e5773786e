-- When the event of a delivery was sent again, by another delivery. NULL if it was not.
ALTER TABLE webhook_deliveries ADD COLUMN retried_at INTEGER;

-- The failed deliveries of a webhook that have not been sent again, in the order of the feed.
CREATE INDEX webhook_deliveries_failed ON webhook_deliveries (webhook_id, sequence)
    WHERE state = 'failed' AND retried_at IS NULL;
