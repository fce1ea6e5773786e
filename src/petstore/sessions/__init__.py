"""Sessions of people at the console."""
