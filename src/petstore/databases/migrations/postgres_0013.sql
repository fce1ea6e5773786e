-- The keys of an environment are listed by their ids.
CREATE INDEX api_keys_by_environment ON api_keys (environment, id);

-- Which delivery comes before another of the same resource. An index of its own condition: those of
-- pending deliveries are empty once all is delivered, and the planner believes so for a long time.
CREATE INDEX webhook_deliveries_waiting ON webhook_deliveries (webhook_id, resource, id)
    WHERE state NOT IN ('succeeded', 'failed');
