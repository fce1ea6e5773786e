"""Files of pets read into rows, in a short-lived process whose memory and time are limited.

A workbook of 8 MiB can unpack to gigabytes, and a Rust library that runs out of memory ends its
process. So ``tables.py`` reads every file in a child; this process only gets rows within bounds.
"""

import subprocess
import sys
from collections.abc import Iterator
from tempfile import TemporaryFile
from typing import BinaryIO, Self

from msgspec import Struct
from msgspec.json import Decoder

from petstore.errors import InvalidBody

MAX_FILE = 8 * 2**20
"""Bytes of a file."""

_AT_ONCE = 65_536
_WAIT = 60
_TOO_LARGE = (
    "The file is too large once it is unpacked, or it is damaged. Save the sheet with the pets alone"
    " as “CSV UTF-8”, and choose that file."
)


class Row(Struct, frozen=True, array_like=True):
    """A row that is not blank: the line it begins in, and its cells without the spaces around.

    A row with a ``problem`` could not be read; it is a sentence for a clerk.
    """

    line: int
    cells: list[str]
    problem: str = ""


class _Head(Struct):
    """What the child says about a file; a ``problem`` if it cannot be read."""

    encoding: str = ""
    separator: str = ""
    notes: list[str] = []
    last_from: int = 0
    problem: str = ""


class Table:
    """What a file is, and its rows, which can be read once. Close it: it has a temporary file.

    ``encoding`` is UTF-8, UTF-16, Windows-1252, Excel or OpenDocument; ``separator`` is empty for
    the last two. ``notes`` are sentences for a clerk, such as which sheets are not read. In the
    rows from line ``last_from`` on each has fewer cells filled than the one before: so totals look.
    """

    def __init__(self, head: _Head, rows: BinaryIO) -> None:
        self.encoding, self.separator, self.notes = head.encoding, head.separator, head.notes
        self.last_from, self._rows = head.last_from, rows

    @property
    def rows(self) -> Iterator[Row]:
        """The rows, one after the other."""
        self._rows.seek(0)
        return map(Decoder(Row).decode, self._rows)

    def close(self) -> None:
        """Delete the temporary file."""
        self._rows.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_table(file: BinaryIO) -> Table:
    """Read a file from its beginning. Its content alone decides what it is.

    It blocks for a tenth of a second, for a full workbook some seconds, while another process
    works: call it with ``asyncio.to_thread``, and let few wait at a time, because each may use
    200 MiB and a processor. The rows are read from a temporary file in the loop, at about 10 µs
    each: rest between some hundreds of them.

    Raises:
        InvalidBody: it cannot be read; the message tells a clerk why, and what to do.
    """
    rows = TemporaryFile()
    try:
        head = _read_in_child(file, rows)
        if head.problem:
            raise InvalidBody(head.problem)
    except BaseException:
        rows.close()
        raise
    return Table(head, rows)


def _read_in_child(file: BinaryIO, rows: BinaryIO) -> _Head:
    file.seek(0)
    size = 0
    with TemporaryFile() as content:
        while part := file.read(_AT_ONCE):
            size += content.write(part)
            if size > MAX_FILE:
                msg = f"The file is larger than {MAX_FILE >> 20} MB. Divide it into smaller ones."
                return _Head(problem=msg)
        content.seek(0)
        command = [sys.executable, "-I", "-m", "petstore.imports.tables", str(rows.fileno())]
        try:
            child = subprocess.run(  # noqa: S603 # this module's own program
                command,
                stdin=content,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                pass_fds=[rows.fileno()],
                timeout=_WAIT,
                check=True,
            )
        except subprocess.SubprocessError:  # it ran out of memory or of time
            return _Head(problem=_TOO_LARGE)
    return Decoder(_Head).decode(child.stdout)
