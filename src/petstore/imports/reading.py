"""Files of pets read into rows, in a short-lived process whose memory and time are limited."""

import errno
import os
import subprocess
import sys
from typing import BinaryIO

from msgspec import Struct
from msgspec.json import Decoder

from petstore.errors import InvalidBody

MAX_FILE, MAX_ROWS = 8 * 2**20, 20_000
"""Bytes of a file, and its rows."""

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
    """A row that is not blank; a ``problem``, a sentence for a clerk, is why it was not read."""

    line: int
    cells: list[str]
    problem: str = ""


class TableHead(Struct, frozen=True):
    """What a file is. ``notes`` are sentences for a clerk.

    From line ``last_from`` on, each row has fewer filled cells than the one before, as totals have.
    A file with a ``problem`` cannot be read.
    """

    encoding: str = ""
    notes: list[str] = []
    last_from: int = 0
    rows: int = 0
    problem: str = ""


decode_rows = Decoder(list[Row]).decode
"""Decode a batch, a line of what ``read_table`` writes."""


def read_table(file: BinaryIO, batches: BinaryIO) -> TableHead:
    """Read a file from its beginning into ``batches``, in another process.

    Call it with ``asyncio.to_thread``, and only once at a time: each call may use 200 MiB and a
    processor. It raises ``InvalidBody``, for a clerk, and ``OSError`` without room for the rows.
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
