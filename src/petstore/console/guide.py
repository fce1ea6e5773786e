"""The page that explains the words and the shortcuts of the console."""

from petstore.console.page import Page, Visit
from petstore.http.messages import Response


async def _show(visit: Visit) -> Response:
    return visit.page("help.html")


PAGES = (Page("GET", "/help", _show),)
