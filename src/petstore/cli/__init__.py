"""The command line."""

INTERRUPTED = 130
"""The exit status after Ctrl-C, as shells have it."""
