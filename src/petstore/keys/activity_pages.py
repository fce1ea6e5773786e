"""The page of what everybody did, for administrators: by person or key, and by kind."""

from petstore.console.forms import FieldSet, choice
from petstore.console.history import HistoryLine, newest_acts
from petstore.console.page import ConsolePage, PageRequest
from petstore.errors import CursorExpired, InvalidParameter, PetstoreError
from petstore.events.model import ADMIN_EVENT_TYPES, EVENT_TYPES, kind_of
from petstore.http.messages import Response

_ON_A_PAGE = 20
_OFFERED = 100
_ADMIN = "key"
_KINDS = {"pet": "pets", "order": "orders", "category": "categories", _ADMIN: "keys and people"}


def _filters(actors: dict[str, str]) -> FieldSet:
    return FieldSet(
        choice("actor", "Who", ("", "anybody"), *actors.items(), caption="Person or key"),
        choice("kind", "Kind", ("", "any"), *_KINDS.items()),
    )


async def _show(request: PageRequest, error: PetstoreError | None = None) -> Response:
    typed = _filters({}).typed(request.form)
    lines: list[HistoryLine] = []
    cursor, following = request.form.text("cursor"), ""
    if error is None:
        query = {"type": _types(typed["kind"]), "actor": typed["actor"] or None}
        try:
            lines, following = await newest_acts(request, query, _ON_A_PAGE, cursor)
        except CursorExpired:
            cursor = ""
            lines, following = await newest_acts(request, query, _ON_A_PAGE)
    return request.page(
        "activity.html",
        error=error,
        form=_filters(await _actors(request, typed["actor"])).new(request.form, error),
        filters={name: text for name, text in typed.items() if text},
        lines=lines,
        following=following,
        is_latest=not cursor,
        is_full=len(lines) == _ON_A_PAGE,
        now=request.services.clock(),
    )


def _types(kind: str) -> list[str]:
    if kind and kind not in _KINDS:
        msg = f"kind: expected one of {', '.join(_KINDS)}"
        raise InvalidParameter(msg)
    kinds = {
        each: _ADMIN if each in ADMIN_EVENT_TYPES else kind_of(each)
        for each in EVENT_TYPES
        if each in ADMIN_EVENT_TYPES or kind_of(each) in _KINDS.keys() - {_ADMIN}
    }
    return [each for each, its in kinds.items() if kind in ("", its)]


async def _actors(request: PageRequest, actor: str) -> dict[str, str]:
    """Return the people and keys to choose from; the one that is wanted is among them."""
    found: dict[str, str] = {}
    for kind, operation in (("person", "listPeople"), ("key", "listKeys")):
        page = await request.execute(operation, query={"limit": _OFFERED})
        found |= {f"{kind}/{each.id}": f"{each.name} ({kind} {each.id})" for each in page.value}
    if actor:
        found.setdefault(actor, actor.replace("/", " "))
    return dict(sorted(found.items(), key=lambda one: one[1].casefold()))


PAGES = (ConsolePage("GET", "/activity", _show, "listKeys", _show),)
