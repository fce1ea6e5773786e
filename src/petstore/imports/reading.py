"""Files of pets read into rows, in a short-lived process whose memory and time are limited.

A workbook of 8 MiB can unpack to gigabytes, and a library in Rust that runs out of memory ends its
process. So ``tables.py`` reads every file in a child, and this process gets only rows.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from tempfile import TemporaryFile
from typing import BinaryIO, Self

from msgspec import Struct
from msgspec.json import Decoder

from petstore.errors import InvalidBody

MAX_FILE = 8 * 2**20
"""Bytes of a file."""

_AT_ONCE = 65_536
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
    ``last_from`` on, each row has fewer filled cells than the one before, as totals have. A file
    with a ``problem`` cannot be read.
    """

    encoding: str = ""
    separator: str = ""
    notes: list[str] = []
    last_from: int = 0
    problem: str = ""


class ImportedTable:
    """A file that was read. Close it: its rows are in a temporary file."""

    def __init__(self, head: TableHead, rows: BinaryIO) -> None:
        self.head, self._rows = head, rows

    @property
    def rows(self) -> Iterator[Row]:
        """The rows from the first one on, each decoded as it is asked for."""
        self._rows.seek(0)
        return map(Decoder(Row).decode, self._rows)

    def close(self) -> None:
        """Delete the temporary file."""
        self._rows.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_table(file: BinaryIO) -> ImportedTable:
    """Read a file from its beginning. Its content alone decides what it is.

    It waits for another process, usually 50 ms, for a large workbook seconds. So call it with
    ``asyncio.to_thread``, and only once at a time: each call may use 200 MiB and a processor. The
    rows can be read in the event loop, at about 5 µs each; rest between some hundreds of them.

    Raises:
        InvalidBody: it cannot be read; the message tells a clerk why, and what to do.
    """
    with ExitStack() as files:
        rows = files.enter_context(TemporaryFile())
        head = _read_in_child(file, rows)
        if head.problem:
            raise InvalidBody(head.problem)
        files.pop_all()
    return ImportedTable(head, rows)


def _read_in_child(file: BinaryIO, rows: BinaryIO) -> TableHead:
    file.seek(0)
    with TemporaryFile() as content:
        while part := file.read(_AT_ONCE):
            content.write(part)
            if content.tell() > MAX_FILE:
                msg = f"The file is larger than {MAX_FILE >> 20} MB. Divide it into smaller files."
                return TableHead(problem=msg)
        content.seek(0)
        try:
            child = subprocess.run(  # noqa: S603 # a module of this package
                [sys.executable, "-I", "-m", "petstore.imports.tables", str(rows.fileno())],
                stdin=content,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                pass_fds=[rows.fileno()],
                timeout=_SECONDS,
                check=True,
            )
        except subprocess.SubprocessError:  # it used up its memory or its time
            return TableHead(problem=_TOO_LARGE)
    return Decoder(TableHead).decode(child.stdout)
