"""Files of pets read into rows, in a short-lived process whose memory and time are limited."""

import errno
import os
import subprocess
import sys
from typing import BinaryIO

from msgspec import Struct
from msgspec.json import Decoder

from petstore.errors import InvalidBody

MAX_FILE = 8 * 2**20
"""Bytes of a file."""

ROWS_AT_ONCE = 100
"""How many rows a batch has, and a transaction adds."""

# Why a process: a workbook of 8 MiB can unpack to gigabytes, and a library in Rust that runs out of
# memory ends its own.
_SECONDS = 15  # with the wait for a turn, less than proxies wait
_TOO_LARGE = (
    "The file is too large once it is unpacked, or it is damaged. Save the sheet with the pets as"
    " “CSV UTF-8”, and choose that file."
)


class Row(Struct, frozen=True, array_like=True):
    """A row that is not blank: the line it begins in, and its cells without the spaces around.

    A row with a ``problem`` could not be read; it is a sentence for a clerk.
    """

    line: int
    cells: list[str]
    problem: str = ""


class TableHead(Struct, frozen=True):
    """What a file is.

    ``encoding`` is UTF-8, UTF-16, Windows-1252, Excel or OpenDocument; ``separator`` is empty for
    the last two. ``notes`` are sentences for a clerk, such as which sheets are not read. From line
    ``last_from`` on, each row has fewer filled cells than the one before, as totals have. There are
    so many ``rows``. A file with a ``problem`` cannot be read.
    """

    encoding: str = ""
    separator: str = ""
    notes: list[str] = []
    last_from: int = 0
    rows: int = 0
    problem: str = ""


decode_rows = Decoder(list[Row]).decode
"""Decode a batch, a line of what ``read_table`` writes."""


def read_table(file: BinaryIO, batches: BinaryIO) -> TableHead:
    """Read a file from its beginning into ``batches``. Its content alone decides what it is.

    It waits for another process, usually 200 ms, for a large workbook seconds. So call it with
    ``asyncio.to_thread``, and only once at a time: each call may use 200 MiB and a processor.

    Raises:
        InvalidBody: it cannot be read; the message tells a clerk why, and what to do.
        OSError: there is no room for the rows.
    """
    file.seek(0)
    try:
        child = subprocess.run(  # noqa: S603 # a module of this package
            [sys.executable, "-I", "-m", "petstore.imports.tables", str(batches.fileno())],
            stdin=file,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=[batches.fileno()],
            timeout=_SECONDS,
            check=True,
        )
    except subprocess.SubprocessError as error:
        if isinstance(error, subprocess.CalledProcessError) and error.returncode == os.EX_IOERR:
            raise OSError(errno.EIO, "the rows of the file cannot be written") from None
        raise InvalidBody(_TOO_LARGE) from None  # it used up its memory or its time
    head = Decoder(TableHead).decode(child.stdout)
    if head.problem:
        raise InvalidBody(head.problem)
    return head
