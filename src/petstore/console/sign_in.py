"""Signing in with a password, a key or a link, the session of a key, and signing out."""

from collections.abc import Mapping
from urllib.parse import urlencode

from msgspec.structs import replace

from petstore.console.browsers import (
    device_of,
    known_cookie,
    known_of,
    no_cookie,
    session_cookie,
    session_secret,
)
from petstore.console.failures import failure_of
from petstore.console.forms import EMPTY, Form, PendingForm, kept_in, page_address
from petstore.console.notices import Notice
from petstore.console.page import HOME, ConsolePage, PageRequest, redirect, with_notice
from petstore.console.scopes import scopes_in_words
from petstore.console.session_limits import login_digest
from petstore.errors import InvalidKey, PetstoreError
from petstore.http.messages import Response
from petstore.interface.authentication import look_up, require_network
from petstore.keys.model import PREFIXES
from petstore.people.accounts import MAX_LOGIN, Account, find_account, sign_in
from petstore.people.passwords import has_length
from petstore.sessions.store import (
    Browser,
    SessionEnd,
    end_session,
    end_sessions,
    find_link,
    open_session,
    use_link,
)

_SIGN_IN = "/sign-in"
_KEY = "key"
_LOGGED_BYTES = 4
_LEFT = "signed-out"
_STARTS = (("/today", "listOrders"), ("/pets", "listPets"), ("/usage", "getUsage"))
_ENDS: Mapping[SessionEnd, str] = {
    "revoked": "Your key was revoked. Ask the person who gave it to you for another one.",
    "expired": "Your key has expired. Ask the person who gave it to you for another one.",
    "replaced": (
        "You were signed out, because your key has a new token, or the one who made your link has."
        " Sign in with the new token, or ask for another link."
    ),
    "unused": "You were signed out, because you did nothing here for 30 minutes.",
    "longest": "You were signed out, because 12 hours have passed since you signed in.",
    "away": "You were signed out, because you did nothing here for 30 days.",
    "disabled": "You may no longer sign in here. Ask an administrator if that is a mistake.",
    "password": (
        "You were signed out, because your password was set anew, the link that signed you in has"
        " ended, or you were disabled for a time. Sign in with your password."
    ),
    "device": "You were signed out here by an administrator, or from another of your devices.",
}
_WRONG = "The login or the password is wrong. Check both. In the password, capital letters count."
# The page of a link has the secret in its address, which is told to nobody; see the Referrer-Policy
# of the other pages for why it is not "no-referrer".
_ORIGIN_ONLY = b"referrer-policy: strict-origin"


async def sign_in_page(
    visit: PageRequest,
    status: int = 200,
    *,
    wanted: str = "",
    again: PendingForm | None = None,
    problem: str = "",
    typed: Form = EMPTY,
) -> Response:
    """Return the page that signs a person in, and then leads to the address ``wanted``.

    It keeps the form ``again``, which was sent too late. ``problem`` is what is wrong with the
    request, or with the sign-in form that was ``typed``. Only the browser of a session that has
    ended is told why.
    """
    has_people = await visit.limits.has_people()
    return visit.page(
        "sign_in.html",
        status,
        next=wanted,
        hidden=again.hidden if again else [],
        problem=problem,
        ended=_ENDS[visit.ended] if visit.ended else "",
        typed=typed,
        # Anybody can lead here. So the text is none of theirs, and true: there is no session.
        notice=Notice("You are signed out.") if visit.form.text(_LEFT) else None,
        has_people=has_people,
        with_key=_KEY in typed.fields or not (has_people or typed.fields),
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
    return await sign_in_page(visit, wanted=wanted)


async def _sign_in(visit: PageRequest) -> Response:
    if _KEY in visit.form.fields:
        return signed_in(visit, await _session_by_key(visit))
    return await _sign_in_person(visit)


async def _session_by_key(visit: PageRequest) -> str:
    token = visit.form.text(_KEY).encode("utf-8", "replace")
    services, limits = visit.services, visit.limits
    look_ups = services.admission.look_ups
    key = await look_up(token, services.keys, look_ups, visit.client)
    require_network(key, visit.client)
    limits.charge_sign_in(key.id, visit.client)
    unit = open_session(key.id, token, services.clock(), browser_of(visit))
    visit.signed_in = key
    return await services.store.write(unit)


async def _sign_in_person(visit: PageRequest) -> Response:
    limits, address, services = visit.limits, visit.client, visit.services
    login, password = _login_of(visit.form), visit.form.raw("password")
    known = known_of(visit.request, visit.root)
    if not has_length(password):  # no password is: it costs no hash, and counts for no login
        raise InvalidKey(_WRONG)
    rehashed = None
    async with limits.password_attempt(login, address, known):
        account = await _account_with(visit, login, password)
        assert account.password is not None  # noqa: S101 - it was verified
        if limits.passwords.is_outdated(account.password):
            rehashed = await limits.passwords.hash(password)
    limits.charge_sign_in(account.caller.id, address)
    browser = browser_of(visit, stays=wants_to_stay(visit))
    secret = await services.store.write(sign_in(account, services.clock(), browser, rehashed))
    if secret is None:  # it was changed meanwhile
        raise InvalidKey(_WRONG)
    visit.signed_in = account.caller
    return await signed_in_person(visit, secret, login, stays=wants_to_stay(visit))


def _login_of(form: Form) -> str:
    """Return the login of a form. Longer texts are none, and must not take their time."""
    return form.line("login")[: MAX_LOGIN + 1]


async def _account_with(visit: PageRequest, login: str, password: str) -> Account:
    """Return the account with a login and a password, or raise ``InvalidKey``.

    Whatever is wrong, it takes as long, and the error is the same.
    """
    services = visit.services
    account = await find_account(services.store, login, services.keys.environment)
    known = None if account is None else account.password
    is_right = await visit.limits.passwords.verify(password, known)
    if account is None or not is_right or account.caller.state(services.clock()) != "active":
        raise InvalidKey(_WRONG)
    return account


def browser_of(visit: PageRequest, *, stays: bool = False) -> Browser:
    """Return the browser of a visit, in which a session is to begin."""
    return Browser(device_of(visit.request), stays, session_secret(visit.request, visit.root))


def wants_to_stay(visit: PageRequest) -> bool:
    """Return whether a person wants to stay signed in, as the form says."""
    return visit.form.text("stays") == "true"


async def _sign_in_again(visit: PageRequest, error: PetstoreError) -> Response:
    """Return the page that signs a person in, with all but the secret that they typed."""
    if _KEY not in visit.form.fields:
        visit.guessed = login_digest(_login_of(visit.form), _LOGGED_BYTES)
    return await sign_in_page(
        visit,
        error.status,
        wanted=page_address(visit.form.raw("next")),
        again=kept_in(visit.form),
        problem=_problem_of(visit, error),
        typed=visit.form,
    )


def _problem_of(visit: PageRequest, error: PetstoreError) -> str:
    """Return what is wrong with a key or a password, or what went wrong, in words for a person."""
    own, token = visit.services.keys.environment, visit.form.text(_KEY)
    if not isinstance(error, InvalidKey):
        return failure_of(error, "").message
    if _KEY not in visit.form.fields:
        return error.message
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
    return signed_in(visit, await _session_by_link(visit))


async def _session_by_link(visit: PageRequest) -> str:
    services, link, now = visit.services, visit.parameter, visit.services.clock()
    environment, secret = services.keys.environment, None
    # Read first: a made-up link must not cost a write.
    if await find_link(services.store, link, "sign_in", environment, now):
        secret = await services.store.write(use_link(link, environment, now, browser_of(visit)))
    if secret is None:
        msg = "this link has ended"
        raise InvalidKey(msg)
    return secret


async def _link_again(visit: PageRequest, error: PetstoreError) -> Response:
    """Return the page of a link that could not be used, or could not be used now."""
    if isinstance(error, InvalidKey):
        return _link_page(visit, error.status, "")
    return _link_page(visit, error.status, visit.parameter, failure_of(error, "").message)


def _link_page(visit: PageRequest, status: int, secret: str, problem: str = "") -> Response:
    return told_to_nobody(visit.page("link.html", status, secret=secret, problem=problem))


def told_to_nobody(page: Response) -> Response:
    """Return a page whose address has a secret: no other page learns it as its referrer."""
    headers = [line for line in page.headers if not line.startswith(b"referrer-policy:")]
    return replace(page, headers=[*headers, _ORIGIN_ONLY])


def signed_in(
    visit: PageRequest, secret: str, notice: Notice | None = None, *, stays: bool = False
) -> Response:
    """Return what a person gets who has just signed in: the page that they wanted."""
    again = kept_in(visit.form)
    if again is None:
        response = redirect(visit.home + page_address(visit.form.raw("next")))
        if notice is not None:
            response = with_notice(response, notice, secret.encode("latin-1"), visit.root)
    else:
        response = visit.page("again.html", again=again)
    cookie = session_cookie(secret, visit.root, stays=stays)
    return replace(response, headers=[*response.headers, cookie])


async def signed_in_person(
    visit: PageRequest, secret: str, login: str, notice: Notice | None = None, *, stays: bool
) -> Response:
    """Return the response to a correct password; from now on, the browser is known."""
    seal = await visit.limits.seal()
    response = signed_in(visit, secret, notice, stays=stays)
    known = known_of(visit.request, visit.root).with_login(login, seal)
    return replace(response, headers=[*response.headers, known_cookie(known, visit.root)])


async def _start(visit: PageRequest) -> Response:
    return await visit.redirect(next(path for path, needed in _STARTS if visit.may(needed)))


async def _show_session(visit: PageRequest) -> Response:
    if visit.caller.role is not None:
        return await visit.redirect("/account")
    return visit.page("session.html", may_do=scopes_in_words(visit.caller.scopes))


async def _sign_out(visit: PageRequest) -> Response:
    if visit.session is not None:
        await visit.services.store.write(end_session(visit.session.digest))
    return _signed_out(visit)


async def _sign_out_everywhere(visit: PageRequest) -> Response:
    await visit.services.store.write(end_sessions(visit.caller.id))
    return _signed_out(visit)


def _signed_out(visit: PageRequest) -> Response:
    response = redirect(f"{visit.home}{_SIGN_IN}?{_LEFT}=true")
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
    ConsolePage("POST", _SIGN_IN, _sign_in, refused=_sign_in_again, public=True, signs_in=True),
    ConsolePage("GET", "/link/{secret}", _show_link, public=True, ends_sessions=True),
    ConsolePage(
        *("POST", "/link/{secret}", _use_link), refused=_link_again, public=True, signs_in=True
    ),
    ConsolePage("GET", "/session", _show_session, ends_sessions=True),
    ConsolePage("POST", "/session/end-all", _sign_out_everywhere, ends_sessions=True),
    ConsolePage("POST", "/sign-out", _sign_out, public=True, ends_sessions=True),
)
