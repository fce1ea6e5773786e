-- The keys that need a look: in their minute, banned, near the limit of their day, about to expire.
CREATE INDEX rate_limits_by_minute ON rate_limits (minute_started);
CREATE INDEX rate_limits_by_ban ON rate_limits (banned_until) WHERE banned_until > 0;
CREATE INDEX key_notices_by_notice ON key_notices (notice, period);
CREATE INDEX api_keys_by_end ON api_keys (expires_at) WHERE expires_at IS NOT NULL;
