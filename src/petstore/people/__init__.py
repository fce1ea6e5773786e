"""People: who works in the console, with a login and a password."""
