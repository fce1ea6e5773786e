"""The page of calls of deprecated operations, for administrators."""

from petstore.console.page import Page, Visit
from petstore.http.messages import Response
from petstore.store.key_status import rehearsing

_ON_A_PAGE = 50


async def _list(visit: Visit) -> Response:
    query = {"limit": _ON_A_PAGE, "cursor": visit.form.text("cursor") or None}
    uses = await visit.call("listDeprecations", query=query)
    key_ids = {use.keyId for use in uses.value}
    return visit.page(
        "deprecations.html",
        uses=uses,
        rehearsing=await rehearsing(visit.services.store, key_ids),
    )


PAGES = (Page("GET", "/deprecations", _list, needs="listDeprecations"),)
