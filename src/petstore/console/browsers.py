"""What a browser sends with each request: the cookie of a session, and where it comes from.

Other sites must not change anything with a person's cookie (RFC 6265bis, Fetch Metadata).
"""

from functools import lru_cache
from urllib.parse import urlsplit

from petstore.errors import CrossSiteRequest
from petstore.http.messages import Request

_NAME = "petstore_console"
_SECURE_NAME = f"__Host-{_NAME}"
# An attacker must not let us look at thousands: the name may be anywhere, also in other values.
_MAX_MENTIONS = 8
_SPACE = " \t"
_SITE = b"sec-fetch-site"
_PORTS = {"http": 80, "https": 443}


def session_secret(request: Request, root: str) -> str:
    """Return the secret in the cookie of a request, empty if there is none.

    Two cookies of the name count as none. Another site below the same domain can set the second
    one, which would sign the person in as somebody else.
    """
    cookies = request.fields.get(b"cookie", b"").decode("latin-1")
    before, *mentions = cookies.split(f"{_name(root)}=", _MAX_MENTIONS)
    values = []
    for mention in mentions:
        if before.rstrip(_SPACE)[-1:] in ("", ";"):
            values.append(mention.partition(";")[0].strip(_SPACE))
        before = mention
    return values[0] if len(values) == 1 else ""


def session_cookie(secret: str, root: str) -> bytes:
    """Return the header that sets the cookie, until the browser closes."""
    return _set_cookie(secret, root)


def no_cookie(root: str) -> bytes:
    """Return the header that deletes the cookie."""
    return _set_cookie("", root) + b"; Max-Age=0"


def _set_cookie(value: str, root: str) -> bytes:
    secure = "; Secure" if _is_https(root) else ""
    text = f"set-cookie: {_name(root)}={value}; Path=/; HttpOnly; SameSite=Strict{secure}"
    return text.encode("ascii")


def _name(root: str) -> str:
    # A browser takes the prefix only together with Secure, which needs https.
    return _SECURE_NAME if _is_https(root) else _NAME


def _is_https(root: str) -> bool:
    return root.startswith("https://")


def require_same_origin(request: Request, public_url: str) -> None:
    """Refuse a request that a page of another origin may have made.

    Browsers send ``Sec-Fetch-Site`` (Fetch Metadata) where the connection is secure, and ``Origin``
    with every form. The origin of the console is that of the ``public_url``. Where the operator has
    named none, it is that of the ``Host``, by http or by https: a proxy may end TLS. Then a proxy
    may also have replaced the ``Host``, so ``Sec-Fetch-Site`` alone counts if it is there.

    Raises:
        CrossSiteRequest: it comes from elsewhere, or does not tell.
    """
    site, origin = request.fields.get(_SITE), request.fields.get(b"origin")
    is_own = site == b"same-origin"
    if origin is not None and (public_url or site is None):
        is_own = site in (b"same-origin", None) and origin in _own_origins(request, public_url)
    if not is_own:
        msg = "Origin: expected a request from a page of this console; open the console and repeat"
        raise CrossSiteRequest(msg)


def may_lack_cookie(request: Request) -> bool:
    """Return whether a browser may have left out a cookie that it has.

    It does so where a person follows a link of another site (``SameSite=Strict``). Only a page that
    the browser shows counts. Without ``Sec-Fetch-Site``, nobody knows.
    """
    site = request.fields.get(_SITE)
    return site in (None, b"cross-site") and request.method in ("GET", "HEAD")


def _own_origins(request: Request, public_url: str) -> tuple[bytes, ...]:
    if public_url:
        return (_origin_of(public_url),)
    host = request.fields.get(b"host", b"")
    return (b"http://" + host, b"https://" + host) if host else ()


@lru_cache(maxsize=1)
def _origin_of(url: str) -> bytes:
    """Return the origin of a URL as browsers write it: in small letters, without a usual port."""
    scheme, netloc, *_ = urlsplit(url.lower())
    usual = f":{_PORTS[scheme]}"
    return f"{scheme}://{netloc.removesuffix(usual)}".encode("ascii")
