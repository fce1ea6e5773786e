"""Signing in with a key or with a link, the session of a person, and signing out."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import urlencode

from msgspec.structs import replace

from petstore.console.browsers import no_cookie, session_cookie, session_secret
from petstore.console.failures import failure_of
from petstore.console.forms import PendingForm, kept_in, page_address
from petstore.console.page import HOME, MAX_FORM, ConsolePage, PageRequest, redirect
from petstore.console.scopes import scopes_in_words
from petstore.errors import InvalidKey, PetstoreError, Unavailable
from petstore.http.messages import Response
from petstore.interface.authentication import require_network
from petstore.keys.model import PREFIXES
from petstore.sessions.store import (
    SessionEnd,
    end_session,
    end_sessions,
    open_session,
    use_link,
)

_SIGN_IN = "/sign-in"
_STARTS = (("/pets", "listPets"), ("/orders", "listOrders"), ("/usage", "getUsage"))
_ENDS: Mapping[SessionEnd, str] = {
    "revoked": "Your key was revoked. Ask the person who gave it to you for another one.",
    "expired": "Your key has expired. Ask the person who gave it to you for another one.",
    "replaced": (
        "You were signed out, because your key has a new token, or the one who made your link has."
        " Sign in with the new token, or ask for another link."
    ),
    "unused": "You were signed out, because you did nothing here for 30 minutes.",
    "longest": "You were signed out, because 12 hours have passed since you signed in.",
}
# The page of a link has the secret in its address, which is told to nobody; see the Referrer-Policy
# of the other pages for why it is not "no-referrer".
_ORIGIN_ONLY = b"referrer-policy: strict-origin"


def sign_in_page(
    visit: PageRequest,
    status: int = 200,
    *,
    wanted: str = "",
    again: PendingForm | None = None,
    problem: str = "",
) -> Response:
    """Return the page that signs a person in, and then leads to the address ``wanted``.

    It keeps the form ``again``, which was sent too late. ``problem`` is what is wrong with the
    request. Only the browser of a session that has ended is told why.
    """
    hidden = again.hidden if again else []
    ended = _ENDS[visit.ended] if visit.ended else ""
    return visit.page(
        "sign_in.html", status, next=wanted, hidden=hidden, problem=problem, ended=ended
    )


def to_sign_in(visit: PageRequest) -> Response:
    """Send the person to the sign-in page, and from there back to the page of this request."""
    return redirect(visit.home + _sign_in_address(visit))


def arrival_page(visit: PageRequest) -> Response:
    """Return a page that goes on by itself to the sign-in page, and from there back.

    The browser sends the cookie with what a page of the console requests, even if it did not send
    it with this request. A person who is signed in then gets the page.
    """
    return visit.page("arrival.html", target=_sign_in_address(visit))


async def _show(visit: PageRequest) -> Response:
    wanted = page_address(visit.form.raw("next"))
    if visit.session is not None:
        return redirect(visit.home + wanted)
    return sign_in_page(visit, wanted=wanted)


async def _sign_in(visit: PageRequest) -> Response:
    token = visit.form.text("key").encode("utf-8", "replace")
    services, limits = visit.services, visit.limits
    with _charged_if_it_fails(visit):
        key = await limits.find_key(token, visit.beyond)
        require_network(key, visit.client)
        limits.charge_sign_in(key.id, visit.client)
        replaced = session_secret(visit.request, visit.root)
        secret = await services.store.write(open_session(key.id, token, services.clock(), replaced))
    return _signed_in(visit, secret)


async def _sign_in_again(visit: PageRequest, error: PetstoreError) -> Response:
    """Return the page that signs a person in, with all but the key that they typed."""
    wanted, again = page_address(visit.form.raw("next")), kept_in(visit.form)
    problem = _problem_of(visit, error)
    return sign_in_page(visit, error.status, wanted=wanted, again=again, problem=problem)


@contextmanager
def _charged_if_it_fails(visit: PageRequest) -> Iterator[None]:
    """Give the charge of an attempt back to its address if the person did nothing wrong."""
    try:
        yield
    except Unavailable:
        visit.limits.give_back(visit.client, visit.beyond)
        raise
    visit.limits.give_back(visit.client, visit.beyond)


def _problem_of(visit: PageRequest, error: PetstoreError) -> str:
    """Return what is wrong with a token, or what went wrong with it, in words for a person."""
    own, token = visit.services.keys.environment, visit.form.text("key")
    if not isinstance(error, InvalidKey):
        return failure_of(error, "").message
    if not token:
        return "Enter your key."
    for environment, prefix in PREFIXES.items():
        if environment != own and token.startswith(prefix):
            return (
                f"This is a key for {environment}, and this service is for {own}. Keys that work"
                f" here begin with {PREFIXES[own]}."
            )
    return (
        "This key does not work here. Check that you copied all of it; it begins with"
        f" {PREFIXES[own]}. A key may also have expired, or have been replaced or revoked: then ask"
        " the person who gave it to you."
    )


async def _show_link(visit: PageRequest) -> Response:
    return _link_page(visit, 200, visit.parameter)


async def _use_link(visit: PageRequest) -> Response:
    with _charged_if_it_fails(visit):
        secret = await _session_by_link(visit)
    return _signed_in(visit, secret)


async def _session_by_link(visit: PageRequest) -> str:
    """Begin a session with the link of the address, and return its secret.

    Raises:
        InvalidKey: the link has ended, or is none.
        RateLimitExceeded: that is so, and the address is beyond its limit.
    """
    services, limits, link = visit.services, visit.limits, visit.parameter
    if await limits.is_worth_a_look_up(link, visit.client):
        replaced = session_secret(visit.request, visit.root)
        unit = use_link(link, services.keys.environment, services.clock(), replaced)
        secret = await services.store.write(unit)
        if secret is not None:
            return secret
        limits.note_end(link)
    raise visit.beyond or InvalidKey("this link has ended")


async def _link_again(visit: PageRequest, error: PetstoreError) -> Response:
    """Return the page of a link that could not be used, or could not be used now."""
    if isinstance(error, InvalidKey):
        return _link_page(visit, error.status, "")
    return _link_page(visit, error.status, visit.parameter, failure_of(error, "").message)


def _link_page(visit: PageRequest, status: int, secret: str, problem: str = "") -> Response:
    response = visit.page("link.html", status, secret=secret, problem=problem)
    headers = [line for line in response.headers if not line.startswith(b"referrer-policy:")]
    return replace(response, headers=[*headers, _ORIGIN_ONLY])


def _signed_in(visit: PageRequest, secret: str) -> Response:
    again = kept_in(visit.form)
    if again is None:
        response = redirect(visit.home + page_address(visit.form.raw("next")))
    else:
        response = visit.page("again.html", again=again)
    return replace(response, headers=[*response.headers, session_cookie(secret, visit.root)])


async def _start(visit: PageRequest) -> Response:
    return await visit.redirect(next(path for path, needed in _STARTS if visit.may(needed)))


async def _show_session(visit: PageRequest) -> Response:
    return visit.page("session.html", may_do=scopes_in_words(visit.caller.scopes))


async def _sign_out(visit: PageRequest) -> Response:
    if visit.session is not None:
        await visit.services.store.write(end_session(visit.session.digest))
    return _signed_out(visit)


async def _sign_out_everywhere(visit: PageRequest) -> Response:
    await visit.services.store.write(end_sessions(visit.caller.id))
    return _signed_out(visit)


def _signed_out(visit: PageRequest) -> Response:
    response = redirect(visit.home + _SIGN_IN)
    return replace(response, headers=[*response.headers, no_cookie(visit.root)])


def _sign_in_address(visit: PageRequest) -> str:
    """Return the address of the sign-in page that leads back to the page of this request."""
    request = visit.request
    query = f"?{request.query.decode('latin-1')}" if request.query else ""
    wanted = page_address(request.path.removeprefix(HOME) + query)
    return _SIGN_IN + (f"?{urlencode({'next': wanted})}" if wanted else "")


PAGES = (
    ConsolePage("GET", "", _start),
    ConsolePage("GET", "/", _start),
    ConsolePage("GET", _SIGN_IN, _show, public=True, ends_sessions=True),
    # What it keeps of another form is longer than in that form.
    ConsolePage(
        *("POST", _SIGN_IN, _sign_in),
        refused=_sign_in_again,
        public=True,
        signs_in=True,
        max_bytes=2 * MAX_FORM,
    ),
    ConsolePage("GET", "/link/{secret}", _show_link, public=True, ends_sessions=True),
    ConsolePage(
        *("POST", "/link/{secret}", _use_link), refused=_link_again, public=True, signs_in=True
    ),
    ConsolePage("GET", "/session", _show_session, ends_sessions=True),
    ConsolePage("POST", "/session/end-all", _sign_out_everywhere, ends_sessions=True),
    ConsolePage("POST", "/sign-out", _sign_out, public=True, ends_sessions=True),
)
