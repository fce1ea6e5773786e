"""The two doors of the console: signing in with a password or a key, and signing out."""

from urllib.parse import urlencode

from msgspec.structs import replace

from petstore.console.browsers import device_of, known_cookie, known_of, no_cookie, session_cookie
from petstore.console.forms import EMPTY, Form, SavedForm, kept_in, page_address
from petstore.console.page import (
    HOME,
    ConsolePage,
    Notice,
    PageRequest,
    failure_of,
    redirect,
    with_notice,
)
from petstore.errors import InvalidKey, PetstoreError
from petstore.http.messages import Response
from petstore.keys.model import PREFIXES
from petstore.people.model import MAX_LOGIN
from petstore.sessions.model import Browser, login_digest
from petstore.sessions.operations import SignedIn

_SIGN_IN = "/sign-in"
_KEY = "key"
_LOGGED_BYTES = 4
_LEFT = "signed-out"
# Anybody can lead here. So the texts are none of theirs, and true: there is no session.
_LEFT_BY = {
    "true": "You are signed out.",
    "rotated": "The old token has ended, and this session with it. Sign in with the new token.",
}
# The page of a link has the secret in its address, which is told to nobody; see the Referrer-Policy
# of the other pages for why it is not "no-referrer".
_ORIGIN_ONLY = b"referrer-policy: strict-origin"


async def sign_in_page(
    visit: PageRequest,
    status: int = 200,
    *,
    wanted: str = "",
    again: SavedForm | None = None,
    problem: str = "",
    typed: Form = EMPTY,
) -> Response:
    """Return the page that signs a person in and leads to ``wanted``; it keeps ``again``."""
    left_by = visit.form.text(_LEFT)
    has_left = left_by in _LEFT_BY
    return visit.page(
        "sign_in.html",
        status,
        next=wanted,
        hidden=again.hidden if again else [],
        problem=problem,
        has_ended=bool(visit.secret) and not (problem or has_left or visit.session),
        typed=typed,
        notice=Notice(_LEFT_BY[left_by]) if has_left else None,
        with_key=_KEY in typed.fields or left_by == "rotated",
    )


def to_sign_in(visit: PageRequest) -> Response:
    return redirect(visit.home + _sign_in_address(visit))


def arrival_page(visit: PageRequest) -> Response:
    """Return a page that goes on by itself: to that request the browser adds the cookie."""
    return visit.page("arrival.html", target=_sign_in_address(visit))


async def _show(visit: PageRequest) -> Response:
    wanted = page_address(visit.form.raw("next"))
    if visit.session is not None:
        return redirect(visit.home + wanted)
    return await sign_in_page(visit, wanted=wanted)


async def _sign_in(visit: PageRequest) -> Response:
    if _KEY in visit.form.fields:
        token = visit.form.text(_KEY).encode("utf-8", "replace")
        return signed_in(
            visit, await visit.sessions.sign_in_with_key(token, visit.client, browser_of(visit))
        )
    login, password = _login_of(visit.form), visit.form.raw("password")
    browser, known = browser_of(visit), known_of(visit.request, visit.root)
    found = await visit.sessions.sign_in(login, password, visit.client, browser, known)
    return signed_in(visit, found)


def _login_of(form: Form) -> str:
    """Return the login of a form. Longer texts are none, and must not take their time."""
    return form.line("login")[: MAX_LOGIN + 1]


def browser_of(visit: PageRequest) -> Browser:
    stays = visit.form.text("stays") == "true" and _KEY not in visit.form.fields
    return Browser(device_of(visit.request), stays, visit.secret)


async def _sign_in_again(visit: PageRequest, error: PetstoreError) -> Response:
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


def told_to_nobody(page: Response) -> Response:
    """Return a page whose address has a secret: no other page learns it as its referrer."""
    headers = [line for line in page.headers if not line.startswith(b"referrer-policy:")]
    return replace(page, headers=[*headers, _ORIGIN_ONLY])


def signed_in(
    visit: PageRequest, found: SignedIn, notice: Notice | None = None, wanted: str = ""
) -> Response:
    """Return the page that a person wanted, with the cookies of the session and the browser."""
    visit.signed_in = found.caller
    again, root = kept_in(visit.form), visit.root
    if again is None:
        response = redirect(visit.home + (wanted or page_address(visit.form.raw("next"))))
        if notice is not None:
            response = with_notice(response, notice, found.secret.encode("latin-1"), root)
    else:
        response = visit.page("again.html", again=again)
    cookies = [session_cookie(found.secret, root, stays=found.stays)]
    if found.caller.kind == "person":
        known = known_of(visit.request, root).with_mark(found.credential)
        cookies.append(known_cookie(known, root))
    return replace(response, headers=[*response.headers, *cookies])


async def _start(visit: PageRequest) -> Response:
    return await visit.redirect("/usage" if visit.caller.kind == "key" else "/today")


async def _sign_out(visit: PageRequest) -> Response:
    if visit.session is not None:
        await visit.sessions.end(visit.secret)
    response = redirect(f"{visit.home}{_SIGN_IN}?{_LEFT}=true")
    return replace(response, headers=[*response.headers, no_cookie(visit.root)])


def _sign_in_address(visit: PageRequest) -> str:
    request = visit.request
    query = f"?{request.query.decode('latin-1')}" if request.query else ""
    wanted = page_address(request.path.removeprefix(HOME) + query)
    return _SIGN_IN + (f"?{urlencode({'next': wanted})}" if wanted else "")


PAGES = (
    ConsolePage("GET", "", _start),
    ConsolePage("GET", "/", _start),
    ConsolePage("GET", _SIGN_IN, _show, public=True),
    ConsolePage("POST", _SIGN_IN, _sign_in, refused=_sign_in_again, public=True, signs_in=True),
    ConsolePage("POST", "/sign-out", _sign_out, public=True),
)
