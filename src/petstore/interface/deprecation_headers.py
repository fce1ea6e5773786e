"""The headers of a deprecated operation, and its end."""

from email.utils import format_datetime
from functools import cache, lru_cache

from petstore.clock import Milliseconds, milliseconds
from petstore.errors import Gone
from petstore.http.messages import Headers
from petstore.interface.operation import Deprecation


@lru_cache(maxsize=64)
def deprecation_headers(deprecation: Deprecation, root: str) -> Headers:
    """Return ``Deprecation`` (RFC 9745), ``Sunset`` (RFC 8594) and the links beside them.

    The links lead below ``root``, the URL of the service.
    """
    since = int(deprecation.since.timestamp())
    sunset = format_datetime(deprecation.sunset, usegmt=True)
    link = (
        f'<{root}{deprecation.documentation}>; rel="deprecation"; type="text/html",'
        f' <{root}{deprecation.successor}>; rel="successor-version"'
    )
    return [
        b"deprecation: @%d" % since,
        f"sunset: {sunset}".encode("ascii"),
        f"link: {link}".encode("ascii"),
    ]


def check_sunset(deprecation: Deprecation, now: Milliseconds) -> None:
    """Refuse an operation that has ended."""
    if now >= _end(deprecation):
        end = format_datetime(deprecation.sunset, usegmt=True)
        msg = f"this operation ended on {end}; use {deprecation.use} instead"
        raise Gone(msg)


@cache
def _end(deprecation: Deprecation) -> Milliseconds:
    return milliseconds(deprecation.sunset)
