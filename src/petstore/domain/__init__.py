"""What a store is about. Pure: no I/O, no framework."""
