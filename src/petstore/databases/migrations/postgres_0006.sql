-- What is deleted once it is old is found by its age.
CREATE INDEX api_key_tokens_by_end ON api_key_tokens (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX usage_by_day ON usage (day);
