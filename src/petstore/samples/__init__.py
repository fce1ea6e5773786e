"""The pets of the demo store."""
