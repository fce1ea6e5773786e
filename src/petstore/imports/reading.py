"""Files of pets read into rows, in a short-lived process whose memory and time are limited.

A workbook of 8 MiB can unpack to gigabytes, and a Rust library that runs out of memory ends its
process. So ``tables.py`` reads every file in a child; this process only gets rows within bounds.
"""

from collections.abc import Iterator
from typing import BinaryIO, Self

from msgspec import Struct

MAX_FILE = 8 * 2**20
"""Bytes of a file."""

MAX_ROWS = 20_000
"""Rows of a file that are not blank."""

MAX_COLUMNS = 256
"""Cells of a row."""


class Row(Struct, frozen=True, array_like=True):
    """A row that is not blank: the line it begins in, and its cells without the spaces around.

    A row with a ``problem`` could not be read; it is a sentence for a clerk. ``is_last`` rows are
    at the end of the file, where totals stand: no later row has as many filled cells.
    """

    line: int
    cells: list[str]
    is_last: bool = False
    problem: str = ""


class Table:
    """What a file is, and its rows, which can be read once. Close it: it has a temporary file.

    ``encoding`` is UTF-8, UTF-16, Windows-1252, Excel workbook or OpenDocument spreadsheet;
    ``separator`` is empty for the latter. ``notes`` are sentences for a clerk, such as which
    sheets are not read.
    """

    encoding: str
    separator: str
    notes: list[str]
    rows: Iterator[Row]

    def close(self) -> None:
        """Delete the temporary file."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_table(file: BinaryIO) -> Table:
    """Read a file from its beginning. Its content alone decides what it is.

    It blocks for a tenth of a second, for a full workbook some seconds, while another process
    works: call it with ``asyncio.to_thread``, and let few wait at a time, because each may use
    ``MEMORY`` and a processor. The rows are read from a temporary file in the loop, at about
    10 µs each: rest between some hundreds of them.

    Raises:
        InvalidBody: it cannot be read; the message tells a clerk why, and what to do.
    """
    raise NotImplementedError
