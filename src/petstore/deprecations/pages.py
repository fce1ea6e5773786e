"""The page of the deprecated operations that keys still call."""

from petstore.console.page import ConsolePage, PageRequest
from petstore.http.messages import Response


async def _show(visit: PageRequest) -> Response:
    return visit.page("deprecations.html", uses=await visit.list_page("listDeprecations"))


PAGES = (ConsolePage("GET", "/deprecations", _show, "listDeprecations"),)
