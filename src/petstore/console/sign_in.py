"""Signing in with a key or with a link, and signing out."""

from msgspec.structs import replace

from petstore.api.authentication import authenticate, require_network
from petstore.api.rate_limit_headers import LOOKUP, refusal
from petstore.console.cookies import no_cookie, session_cookie
from petstore.console.page import Page, Visit, redirect
from petstore.domain.api_keys import ApiKey
from petstore.errors import InvalidKey, NetworkNotAllowed
from petstore.http.messages import Response
from petstore.store.console_sessions import end_session, open_session, use_link

_START = "/pets"


async def _show(visit: Visit) -> Response:
    return visit.page("sign_in.html", next=visit.form.text("next"))


async def _sign_in(visit: Visit) -> Response:
    token = visit.form.text("key").encode("utf-8", "replace")
    try:
        key = await _key_of(visit, token)
    except (InvalidKey, NetworkNotAllowed) as error:
        wanted = visit.form.text("next")
        return visit.page("sign_in.html", error.status, next=wanted, error=error)
    services = visit.services
    secret = await services.store.write(open_session(key.id, token, services.clock()))
    return _signed_in(visit, secret)


async def _key_of(visit: Visit, token: bytes) -> ApiKey:
    """Return the key of a token; wrong ones are limited by address.

    Raises:
        InvalidKey: it is no token of a key that can be used here and now.
        NetworkNotAllowed: the key may not be used from there.
        RateLimitExceeded: the address has tried too many.
    """
    services = visit.services
    decision = services.look_ups.take(visit.client)
    if decision.verdict != "admitted":
        raise refusal(decision, LOOKUP)
    key = await authenticate(token, services.keys)
    services.look_ups.give_back(visit.client)
    require_network(key, visit.client)
    return key


async def _show_link(visit: Visit) -> Response:
    return visit.page("link.html", secret=visit.parameter)


async def _use_link(visit: Visit) -> Response:
    services = visit.services
    unit = use_link(visit.parameter, services.keys.environment, services.clock())
    secret = await services.store.write(unit)
    if secret is None:
        return visit.page("link.html", 401, secret="")
    return _signed_in(visit, secret)


async def _sign_out(visit: Visit) -> Response:
    assert visit.session is not None  # noqa: S101 - the page is not public
    await visit.services.store.write(end_session(visit.session))
    response = redirect(f"{visit.home}/sign-in")
    return replace(response, headers=[*response.headers, no_cookie(visit.root)])


async def _start(visit: Visit) -> Response:
    return await visit.redirect(_START)


def _signed_in(visit: Visit, secret: str) -> Response:
    wanted = visit.form.text("next")
    # Only a page of the console: a link must not lead a person who signs in elsewhere.
    is_page = wanted.startswith("/") and not wanted.startswith("//") and wanted.isascii()
    response = redirect(visit.home + (wanted if is_page else _START))
    return replace(response, headers=[*response.headers, session_cookie(secret, visit.root)])


PAGES = (
    Page("GET", "", _start),
    Page("GET", "/sign-in", _show, public=True),
    Page("POST", "/sign-in", _sign_in, public=True),
    Page("GET", "/link/{secret}", _show_link, public=True),
    Page("POST", "/link/{secret}", _use_link, public=True),
    Page("POST", "/sign-out", _sign_out),
)
