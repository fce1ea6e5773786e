"""The animals of the demo store."""
