"""Where a request comes from: other sites must not change anything with a person's cookie."""

from functools import lru_cache
from urllib.parse import urlsplit

from petstore.errors import CrossSiteRequest
from petstore.http.messages import Request

_SITE = b"sec-fetch-site"
_PORTS = {"http": 80, "https": 443}


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
