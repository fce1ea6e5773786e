"""The content coding of a response, of those that the client takes."""

import pytest

from petstore.http.messages import Request
from petstore.interface.messages import choose_coding

AVAILABLE = ("zstd", "gzip")


def choice(accepted: str | None) -> str | None:
    fields = {} if accepted is None else {b"accept-encoding": accepted.encode("latin-1")}
    return choose_coding(Request("GET", "/", b"", "127.0.0.1", fields), AVAILABLE)


@pytest.mark.parametrize(
    "accepted",
    [
        *(None, "", "identity", "br", "gzip;q=0", "gzip;q=0.000, zstd; q=0", "*;q=0"),
        *("identity, gzip;q=0.5", "gzip;q=2", "gzip;level=9", "gzip zstd", "gz\xefp", ";q=1"),
    ],
)
def test_content_is_not_encoded_if_the_client_prefers_no_available_coding(
    accepted: str | None,
) -> None:
    assert choice(accepted) is None


@pytest.mark.parametrize(
    ("accepted", "chosen"),
    [
        ("gzip", "gzip"),
        ("GZip", "gzip"),
        ("gzip, deflate, br, zstd", "zstd"),
        ("gzip, deflate, br", "gzip"),
        ("gzip, identity", "gzip"),
        ("gzip, zstd;q=1", "zstd"),
        ("gzip;q=1.0, zstd;q=0.8", "gzip"),
        ("gzip ; Q=0.001", "gzip"),
        ("*", "zstd"),
        ("zstd;q=0, *;q=0.5", "gzip"),
        ("identity;q=0.5, gzip", "gzip"),
        ("identity;q=0, gzip;q=0.1", "gzip"),
        (", gzip,,", "gzip"),
        ("nonsense;, gzip", "gzip"),
    ],
)
def test_the_client_gets_its_preferred_coding(accepted: str, chosen: str) -> None:
    assert choice(accepted) == chosen


def test_content_without_stored_codings_is_not_encoded() -> None:
    request = Request("GET", "/", b"", "127.0.0.1", {b"accept-encoding": b"*"})
    assert choose_coding(request, ()) is None
