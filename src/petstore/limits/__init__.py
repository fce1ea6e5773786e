"""Rate limits by key and by client address, and bans of keys that ignore 429."""
