-- A replay finds the events of a window of time.
CREATE INDEX events_by_time ON events (at);
