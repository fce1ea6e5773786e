"""The two doors of the console: signing in with a password or a key, and signing out."""

from urllib.parse import urlencode

from msgspec.structs import replace

from petstore.clock import DAY
from petstore.console.forms import EMPTY, Form, SavedForm, kept_in, page_address
from petstore.console.page import (
    HOME,
    SESSION,
    ConsolePage,
    Notice,
    PageRequest,
    cookie_header,
    cookie_of,
    failure_of,
    redirect,
    with_notice,
)
from petstore.errors import InvalidKey, PetstoreError
from petstore.http.messages import Request, Response
from petstore.keys.model import PREFIXES
from petstore.people.model import (
    MAX_LOGIN,
    STAYS,
    Browser,
    DeviceCookie,
    known_browser,
    login_digest,
)
from petstore.people.session_operations import SignedIn

_SIGN_IN = "/sign-in"
_KEY = "key"
_LOGGED_BYTES = 4
_LEFT = "signed-out"
_KNOWN = "petstore_known"
# The first sign that is there counts: most browsers also name those that they are like.
_BROWSERS = (
    (b"Edg", "Edge"),
    (b"OPR/", "Opera"),
    (b"SamsungBrowser/", "Samsung Internet"),
    (b"Firefox/", "Firefox"),
    (b"FxiOS/", "Firefox"),
    (b"CriOS/", "Chrome"),
    (b"Chrome/", "Chrome"),
    (b"Safari/", "Safari"),
)
_SYSTEMS = (
    (b"iPhone", "iPhone"),
    (b"iPad", "iPad"),
    (b"Android", "Android"),
    (b"CrOS", "ChromeOS"),
    (b"Windows", "Windows"),
    (b"Mac OS X", "Mac"),
    (b"Linux", "Linux"),
)


async def sign_in_page(
    request: PageRequest,
    status: int = 200,
    *,
    wanted: str = "",
    again: SavedForm | None = None,
    problem: str = "",
    typed: Form = EMPTY,
) -> Response:
    has_left = request.form.text(_LEFT) == "true"  # anyone can lead here: the text is true
    return request.page(
        "sign_in.html",
        status,
        next=wanted,
        hidden=again.hidden if again else [],
        problem=problem,
        has_ended=bool(request.secret) and not (problem or has_left or request.session),
        typed=typed,
        notice=Notice("You are signed out.") if has_left else None,
        with_key=_KEY in typed.fields,
    )


def to_sign_in(request: PageRequest) -> Response:
    """Lead to the sign-in page, by another page if a link of another site may have led here.

    That page continues automatically: to its request the browser adds a cookie that there may be
    (``SameSite=Strict``).
    """
    head = request.head
    query = f"?{head.query.decode('latin-1')}" if head.query else ""
    wanted = page_address(head.path.removeprefix(HOME) + query)
    target = _SIGN_IN + (f"?{urlencode({'next': wanted})}" if wanted else "")
    if head.fields.get(b"sec-fetch-site") in (None, b"cross-site"):
        return request.page("arrival.html", target=target)
    return redirect(request.home + target)


async def _show(request: PageRequest) -> Response:
    wanted = page_address(request.form.raw("next"))
    if request.session is not None:
        return redirect(request.home + wanted)
    return await sign_in_page(request, wanted=wanted)


async def _sign_in(request: PageRequest) -> Response:
    if _KEY in request.form.fields:
        token, browser = request.form.text(_KEY).encode("utf-8", "replace"), browser_of(request)
        found = await request.sessions.sign_in_with_key(token, request.client, browser)
        return signed_in(request, found)
    login, password = _login_of(request.form), request.form.raw("password")
    browser, known = browser_of(request), _known_of(request)
    found = await request.sessions.sign_in(login, password, request.client, browser, known)
    return signed_in(request, found)


def _login_of(form: Form) -> str:
    """Return the login of a form. Longer texts are none, and must not take their time."""
    return form.line("login")[: MAX_LOGIN + 1]


def browser_of(request: PageRequest) -> Browser:
    stays = request.form.text("stays") == "true" and _KEY not in request.form.fields
    return Browser(device_of(request.head), stays, request.secret)


def device_of(request: Request) -> str:
    """Return what a browser is, such as ``Firefox on Android``, in words of ours."""
    agent = request.fields.get(b"user-agent", b"")
    browser = next((words for sign, words in _BROWSERS if sign in agent), "")
    system = next((words for sign, words in _SYSTEMS if sign in agent), "")
    return " on ".join(filter(None, (browser, system)))


def is_phone(request: Request) -> bool:
    hint = request.fields.get(b"sec-ch-ua-mobile")
    return hint == b"?1" if hint else b"Mobi" in request.fields.get(b"user-agent", b"")


def session_cookie(secret: str, root: str, *, stays: bool) -> bytes:
    return cookie_header(SESSION, secret, root, STAYS if stays else None)


def _known_of(request: PageRequest) -> DeviceCookie:
    return known_browser(cookie_of(request.head, _KNOWN, request.root))


async def _sign_in_again(request: PageRequest) -> Response:
    error = request.error
    assert error is not None  # noqa: S101 - only such a request gets here
    if _KEY not in request.form.fields:
        request.guessed = login_digest(_login_of(request.form), _LOGGED_BYTES)
    return await sign_in_page(
        request,
        error.status,
        wanted=page_address(request.form.raw("next")),
        again=kept_in(request.form),
        problem=_problem_of(request, error),
        typed=request.form,
    )


def _problem_of(request: PageRequest, error: PetstoreError) -> str:
    if not isinstance(error, InvalidKey):
        return failure_of(error, "").message
    if _KEY not in request.form.fields:
        return error.message
    if not request.form.text(_KEY):
        return "Enter your key."
    return (
        "This key does not work here. Check that you copied all of it; it begins with"
        f" {PREFIXES[request.services.keys.environment]}. A key may also have expired, or have been"
        " replaced or revoked: then ask the person who gave it to you."
    )


def signed_in(
    request: PageRequest, found: SignedIn, notice: Notice | None = None, wanted: str = ""
) -> Response:
    request.signed_in = found.caller
    again, root = kept_in(request.form), request.root
    if again is None:
        response = redirect(request.home + (wanted or page_address(request.form.raw("next"))))
        if notice is not None:
            response = with_notice(response, notice, found.secret.encode("latin-1"), root)
    else:
        response = request.page("again.html", again=again)
    cookies = [session_cookie(found.secret, root, stays=found.stays)]
    if found.caller.kind == "person":
        known = _known_of(request).with_mark(found.credential)
        cookies.append(cookie_header(_KNOWN, known.cookie, root, 365 * DAY))
    return replace(response, headers=[*response.headers, *cookies])


async def _start(request: PageRequest) -> Response:
    return await request.redirect("/usage" if request.caller.kind == "key" else "/today")


async def _sign_out(request: PageRequest) -> Response:
    if request.session is not None:
        await request.sessions.end(request.secret)
    response = redirect(f"{request.home}{_SIGN_IN}?{_LEFT}=true")
    return replace(
        response, headers=[*response.headers, cookie_header(SESSION, "", request.root, 0)]
    )


PAGES = (
    ConsolePage("GET", "", _start),
    ConsolePage("GET", "/", _start),
    ConsolePage("GET", _SIGN_IN, _show, public=True),
    ConsolePage("POST", _SIGN_IN, _sign_in, refused=_sign_in_again, public=True, signs_in=True),
    ConsolePage("POST", "/sign-out", _sign_out, public=True),
)
