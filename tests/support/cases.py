"""Cases of a test that share a set-up."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def case(*values: object) -> Iterator[None]:
    """Name the case in the report of whatever fails in the block."""
    try:
        yield
    except Exception as error:
        error.add_note("in the case " + ", ".join(repr(value)[:80] for value in values))
        raise
