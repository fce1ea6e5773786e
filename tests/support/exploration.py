"""How far tests explore what can happen: a little each time, and further on demand."""

import os
from typing import Any

from hypothesis import settings

DEPTH = int(os.environ.get("EXPLORATION_DEPTH", "1"))
"""How many times as many examples, rounds or callers as in an ordinary run."""


def explored(examples: int, **options: Any) -> settings:
    """Return the settings of a property that is tried on so many examples in an ordinary run."""
    return settings(max_examples=examples * DEPTH, **options)
