"""People who work in the console."""
