-- The keys of an environment are listed by their ids.
CREATE INDEX api_keys_by_environment ON api_keys (environment, id);
