"""The default permissions of new files of this process."""

import os
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def umask(mask: int) -> Iterator[None]:
    """Take ``mask`` from the permissions of new files, until the block ends."""
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)
