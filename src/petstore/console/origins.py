"""Where a request comes from: other sites must not change anything with a person's cookie."""

from petstore.errors import CrossSiteRequest
from petstore.http.messages import Request


def require_same_origin(request: Request) -> None:
    """Refuse a request that a page of another origin may have made.

    Browsers send ``Sec-Fetch-Site`` (Fetch Metadata) where the connection is secure, and ``Origin``
    with every form.

    Raises:
        CrossSiteRequest: it comes from elsewhere, or does not tell.
    """
    site = request.fields.get(b"sec-fetch-site")
    if site is not None:
        is_own = site == b"same-origin"
    else:
        _, separator, host = request.fields.get(b"origin", b"").partition(b"://")
        is_own = bool(separator) and host == request.fields.get(b"host")
    if not is_own:
        msg = "Origin: expected a request from a page of this console; open the console and repeat"
        raise CrossSiteRequest(msg)
