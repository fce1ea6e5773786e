"""The page of calls of deprecated operations, for administrators."""

from petstore.console.page import Page, Visit
from petstore.http.messages import Response

_ON_A_PAGE = 50


async def _list(visit: Visit) -> Response:
    query = {"limit": _ON_A_PAGE, "cursor": visit.form.text("cursor") or None}
    return visit.page("deprecations.html", uses=await visit.call("listDeprecations", query=query))


PAGES = (Page("GET", "/deprecations", _list, needs="listDeprecations"),)
