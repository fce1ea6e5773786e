"""What an error means to the person at the console."""

from typing import NamedTuple

from msgspec.structs import replace

from petstore.console.templates import begun
from petstore.errors import CrossSiteRequest, Overloaded, PetstoreError
from petstore.http.messages import Response

_FAULT = 500
_TITLES = {
    400: "This does not look right",
    401: "You are signed out",
    403: "You don't have access",
    404: "There is nothing here",
    405: "This address does not open as a page",
    408: "That took too long",
    409: "That is not possible now",
    412: "Somebody else changed this meanwhile",
    413: "That is too large",
    415: "This is not a form",
    429: "Too many requests",
    _FAULT: "Something went wrong",
    503: "The shop is not available now",
}
_TEXTS = {
    401: "Your session has ended. Sign in again.",
    405: "It takes what a form sends. Go back to the page with the form.",
    408: "What you sent did not arrive in time, and nothing was changed. Send it again.",
    415: "The console takes what its own forms send, and nothing else.",
    503: "Its database does not respond. Wait a moment, and try again.",
}
# A browser would ask for a name and a password, or not understand it.
_NOT_FOR_BROWSERS = ("WWW-Authenticate",)
_OTHER_SITE = (
    "Your browser did not say that this came from a page of the console, so nothing was changed."
    " Open the console and do it there."
)


class PageFailure(NamedTuple):
    """What went wrong: the status of the page, a heading, and sentences that say what to do."""

    status: int
    title: str
    message: str


def failure_of(error: PetstoreError, request_id: str) -> PageFailure:
    status = error.status
    title = _TITLES.get(status, "This did not work")
    if isinstance(error, CrossSiteRequest):
        return PageFailure(status, "This did not come from the console", _OTHER_SITE)
    if status == _FAULT:
        text = (
            "The service failed, and its log has the reason."
            f" An administrator finds it by the request {request_id}."
        )
    else:
        is_busy = isinstance(error, Overloaded)  # which is no matter of the database
        text = (None if is_busy else _TEXTS.get(status)) or sentence(error.message)
    return PageFailure(status, title, text)


def with_error(response: Response, error: PetstoreError) -> Response:
    """Return a page with the header fields of an error, which the log also learns of."""
    headers = [
        f"{name.lower()}: {value}".encode("latin-1")
        for name, value in error.headers.items()
        if name not in _NOT_FOR_BROWSERS
    ]
    return replace(
        response, headers=[*response.headers, *headers], code=error.code, limit=error.limit
    )


def sentence(message: str) -> str:
    return f"{begun(message)}."
