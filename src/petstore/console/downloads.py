"""Files that a browser saves."""

from collections.abc import Mapping

from petstore.clock import Milliseconds, utc
from petstore.http.messages import Headers, Response
from petstore.store.pet_files import Delimiter

DELIMITERS: Mapping[str, Delimiter] = {"comma": ",", "semicolon": ";"}
"""What divides the cells of a file, by the values of the choice."""

# Spreadsheets take a CSV file without the mark for one in the encoding of the country.
_MARK = "\ufeff"
_HEADERS: Headers = [b"content-type: text/csv; charset=utf-8", b"cache-control: no-store"]


def csv_download(name: str, text: str) -> Response:
    """Return a CSV file to save under an ASCII ``name`` (RFC 6266); spreadsheets see its UTF-8."""
    disposition = f'content-disposition: attachment; filename="{name}"'.encode("ascii")
    return Response(200, (_MARK + text).encode(), [*_HEADERS, disposition])


def dated(name: str, now: Milliseconds) -> str:
    """Return the name of a CSV file with the day in UTC."""
    return f"{name}-{utc(now):%Y-%m-%d}.csv"
