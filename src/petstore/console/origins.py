"""Where a request comes from: other sites must not change anything with a person's cookie."""

from urllib.parse import urlsplit

from petstore.errors import CrossSiteRequest
from petstore.http.messages import Request

_SITE = b"sec-fetch-site"


def require_same_origin(request: Request, root: str) -> None:
    """Refuse a request that a page of another origin may have made.

    Browsers send ``Sec-Fetch-Site`` (Fetch Metadata) where the connection is secure, and ``Origin``
    with every form. The origin is that of the ``Host``, or of the service's URL ``root``: a proxy
    may replace the ``Host``.

    Raises:
        CrossSiteRequest: it comes from elsewhere, or does not tell.
    """
    site = request.fields.get(_SITE)
    if site is not None:
        is_own = site == b"same-origin"
    else:
        _, separator, host = request.fields.get(b"origin", b"").partition(b"://")
        own = (request.fields.get(b"host"), urlsplit(root).netloc.encode("ascii"))
        is_own = bool(separator and host) and host in own
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
