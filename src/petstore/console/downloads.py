"""Files that a browser saves. They are on the disk until they are sent."""

from codecs import BOM_UTF8
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from io import TextIOWrapper
from tempfile import TemporaryFile
from typing import Any, BinaryIO, cast

from petstore.clock import Milliseconds, utc
from petstore.console.forms import Form, choice
from petstore.console.numbers import plain_amount
from petstore.console.page import PageRequest
from petstore.domain.csv_files import Delimiter, csv_writer
from petstore.http.messages import Headers, Response
from petstore.time_slices import TimeSlices

_DELIMITERS: Mapping[str, Delimiter] = {"comma": ",", "semicolon": ";"}
SEPARATOR = choice("separator", "Separator", *((name, name) for name in _DELIMITERS))

_HEADERS: Headers = [b"content-type: text/csv; charset=utf-8", b"cache-control: no-store"]


class CsvDownload(TextIOWrapper):
    def __init__(self) -> None:
        file = cast("BinaryIO", TemporaryFile())  # noqa: SIM115 - the server closes it
        # Without the mark, spreadsheets expect the encoding of the country.
        file.write(BOM_UTF8)
        super().__init__(file, "utf-8", newline="")

    def response(self, name: str) -> Response:
        """Return the response that has the browser save it under an ASCII ``name`` (RFC 6266)."""
        disposition = f'content-disposition: attachment; filename="{name}"'.encode("ascii")
        file = cast("BinaryIO", self.detach())
        return Response(200, b"", [*_HEADERS, disposition], file=file)


async def download_list(
    request: PageRequest,
    name: str,
    columns: Sequence[str],
    operation_id: str,
    query: Mapping[str, Any],
    rows_of: Callable[[Sequence[Any]], Awaitable[Iterable[dict[str, Any]]]],
) -> Response:
    cursor, slices = None, TimeSlices()
    with ExitStack() as opened:
        file = opened.enter_context(CsvDownload())
        delimiter = delimiter_of(request.form)
        write = csv_writer(file, columns, spreadsheet_safe=True, delimiter=delimiter)
        while request.head.method != "HEAD":
            page = {**query, "limit": 100, "cursor": cursor}
            found = await request.execute(operation_id, query=page)
            for row in await rows_of(found.value):
                write(row)
                await slices.rest()
            cursor = found.next
            if not cursor:
                break
        opened.pop_all()  # the server closes the file
    return file.response(dated(name, request.services.clock()))


def delimiter_of(form: Form) -> Delimiter:
    return _DELIMITERS.get(SEPARATOR.typed(form), ",")


def amount_cell(amount: int, currency: str, delimiter: Delimiter) -> str:
    """Return an amount, with a decimal comma between semicolons: 12.50 would be a date."""
    text = plain_amount(amount, currency)
    return text.replace(".", ",") if delimiter == ";" else text


def dated(name: str, now: Milliseconds) -> str:
    return f"{name}-{utc(now):%Y-%m-%d}.csv"
