"""The command line."""

import os

INTERRUPTED = 130
"""The exit status after Ctrl-C, as shells have it."""


def end_at_once(*_: object) -> None:
    """Handle Ctrl-C while there is nothing to clean up."""
    os._exit(INTERRUPTED)
