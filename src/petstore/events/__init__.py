"""Events: what changed, in the order of the commits."""
