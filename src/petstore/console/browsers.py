"""What a browser sends with each request: its cookies, what it is, and where it comes from.

Other sites must not change anything with a person's cookie (RFC 6265bis, Fetch Metadata).
"""

from functools import lru_cache
from urllib.parse import urlsplit

from petstore.clock import DAY, MINUTE, SECOND, Milliseconds
from petstore.errors import CrossSiteRequest
from petstore.http.messages import Request
from petstore.people.model import STAYS, DeviceCookie, known_browser

_SESSION = "petstore_console"
_KNOWN = "petstore_known"
_NOTICE = "petstore_notice"
_SECURE = "__Host-"
_KNOWN_LIFE: Milliseconds = 365 * DAY
# An attacker must not let us look at thousands: the name may be anywhere, also in other values.
_MAX_MENTIONS = 8
_SPACE = " \t"
_SITE = b"sec-fetch-site"
_PORTS = {"http": 80, "https": 443}
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


def session_secret(request: Request, root: str) -> str:
    return _cookie(request, _SESSION, root)


def session_cookie(secret: str, root: str, *, stays: bool = False) -> bytes:
    return _set_cookie(_SESSION, secret, root, STAYS if stays else None)


def no_cookie(root: str) -> bytes:
    return _set_cookie(_SESSION, "", root, 0)


def known_of(request: Request, root: str) -> DeviceCookie:
    return known_browser(_cookie(request, _KNOWN, root))


def known_cookie(browser: DeviceCookie, root: str) -> bytes:
    return _set_cookie(_KNOWN, browser.cookie, root, _KNOWN_LIFE)


def notice_of(request: Request, root: str) -> str:
    return _cookie(request, _NOTICE, root)


def notice_cookie(signed: str, root: str) -> bytes:
    """Return the header that keeps a notice for the next page; an empty one deletes it."""
    return _set_cookie(_NOTICE, signed, root, MINUTE if signed else 0)


def place_of(request: Request, root: str, name: str) -> str:
    return _cookie(request, f"petstore_{name}", root)


def place_cookie(name: str, query: str, root: str) -> bytes:
    return _set_cookie(f"petstore_{name}", query, root, None if query else 0)


def device_of(request: Request) -> str:
    """Return what a browser is, such as ``Firefox on Android``, in words of ours."""
    agent = request.fields.get(b"user-agent", b"")
    browser = next((words for sign, words in _BROWSERS if sign in agent), "")
    system = next((words for sign, words in _SYSTEMS if sign in agent), "")
    if not browser:
        return system
    return f"{browser} on {system}" if system else browser


def is_phone(request: Request) -> bool:
    hint = request.fields.get(b"sec-ch-ua-mobile")
    return hint == b"?1" if hint else b"Mobi" in request.fields.get(b"user-agent", b"")


def _cookie(request: Request, name: str, root: str) -> str:
    """Return a cookie, empty without one. Of two, one may be of another site."""
    cookies = request.fields.get(b"cookie", b"").decode("latin-1")
    before, *mentions = cookies.split(f"{_name(name, root)}=", _MAX_MENTIONS)
    values = []
    for mention in mentions:
        if before.rstrip(_SPACE)[-1:] in ("", ";"):
            values.append(mention.partition(";")[0].strip(_SPACE))
        before = mention
    return values[0] if len(values) == 1 else ""


def _set_cookie(name: str, value: str, root: str, life: Milliseconds | None) -> bytes:
    secure = "; Secure" if _is_https(root) else ""
    lasts = "" if life is None else f"; Max-Age={life // SECOND}"
    text = f"set-cookie: {_name(name, root)}={value}; Path=/; HttpOnly; SameSite=Strict"
    return (text + secure + lasts).encode("ascii")


def _name(name: str, root: str) -> str:
    # A browser takes the prefix only together with Secure, which needs https.
    return f"{_SECURE}{name}" if _is_https(root) else name


def _is_https(root: str) -> bool:
    return root.startswith("https://")


def require_same_origin(request: Request, public_url: str) -> None:
    """Refuse a request that a page of another origin may have made.

    Browsers send ``Sec-Fetch-Site`` (Fetch Metadata) where the connection is secure, and ``Origin``
    with every form. The origin of the console is that of the ``public_url``. Where the operator has
    named none, it is that of the ``Host``, by http or by https: a proxy may end TLS. Then a proxy
    may also have replaced the ``Host``, so ``Sec-Fetch-Site`` alone counts if it is there.
    """
    site, origin = request.fields.get(_SITE), request.fields.get(b"origin")
    is_own = site == b"same-origin"
    if origin is not None and (public_url or site is None):
        is_own = site in (b"same-origin", None) and origin in _own_origins(request, public_url)
    if not is_own:
        msg = "Origin: expected a request from a page of this console; open the console and repeat"
        raise CrossSiteRequest(msg)


def may_lack_cookie(request: Request) -> bool:
    """Return whether a link of another site may have led here (``SameSite=Strict``)."""
    site = request.fields.get(_SITE)
    return site in (None, b"cross-site") and request.method in ("GET", "HEAD")


def _own_origins(request: Request, public_url: str) -> tuple[bytes, ...]:
    if public_url:
        return (_origin_of(public_url),)
    host = request.fields.get(b"host", b"")
    return (b"http://" + host, b"https://" + host) if host else ()


@lru_cache(maxsize=1)
def _origin_of(url: str) -> bytes:
    scheme, netloc, *_ = urlsplit(url.lower())
    usual = f":{_PORTS[scheme]}"
    return f"{scheme}://{netloc.removesuffix(usual)}".encode("ascii")
