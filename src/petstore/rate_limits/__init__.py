"""Two windows a key, bans for those who do not listen, and a limit by address."""
