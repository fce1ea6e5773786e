"""The page of what everybody did, for administrators: by person or key, kind and day."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from petstore.clock import DAY, SECOND, Milliseconds
from petstore.console.caller_changes import lines_of_changes
from petstore.console.fields import Field, FieldSet, Texts, choice
from petstore.console.history import HistoryLine, lines_of
from petstore.console.page import ConsolePage, PageRequest
from petstore.domain.decoding import integer_in
from petstore.domain.fields import INT64_MAX
from petstore.errors import InvalidParameter, PetstoreError
from petstore.events.history import PastEvent
from petstore.events.model import EVENT_TYPES, kind_of, readable_types
from petstore.http.messages import Response
from petstore.keys.activity import (
    LAST_MOMENT,
    ON_A_PAGE,
    ActivityEntry,
    ActivityFilter,
    ActivityPage,
    read_activity,
)
from petstore.keys.history import CallerChange
from petstore.keys.status import newest_callers

_OFFERED = 200
_BY = re.compile(r"(?:key|person)/[1-9][0-9]{0,18}")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_KEYS = "key"
_KINDS = {"pet": "animals", "order": "orders", "category": "categories", _KEYS: "keys and people"}
_OF_RESOURCES = {kind for kind in EVENT_TYPES if kind_of(kind) in _KINDS.keys() - {_KEYS}}


def _filters(callers: Sequence[tuple[str, str]] = ()) -> FieldSet:
    kinds = (("", "any"), *_KINDS.items())
    return FieldSet(
        choice("by", "Who", ("", "anybody"), *callers, caption="Person or key"),
        choice("kind", "Kind", *kinds),
        Field("day", "Day", caption="Day (UTC)", type="date"),
    )


async def _show(visit: PageRequest, error: PetstoreError | None = None) -> Response:
    """Show what was done, the newest first, from where the address begins."""
    typed = _filters().typed(visit.form)
    page = ActivityPage([], None)
    before = _before(visit)
    if error is None:
        wanted = _wanted(visit, typed)
        page = await read_activity(visit.services.store, wanted, before)
    return visit.page(
        "activity.html",
        error=error,
        form=_filters(await _callers(visit, typed["by"])).new(visit.form, error),
        filters={name: text for name, text in typed.items() if text},
        lines=await _lines(visit, page.entries),
        following=page.following,
        is_latest=before is None,
        is_full=len(page.entries) == ON_A_PAGE,
        now=visit.services.clock(),
    )


def _wanted(visit: PageRequest, typed: Texts) -> ActivityFilter:
    """Return what the address asks for, as far as the caller may read it.

    Raises:
        InvalidParameter: there is no such kind or day, or it names neither a key nor a person.
    """
    kind, by = typed["kind"], typed["by"]
    if kind and kind not in _KINDS:
        msg = f"kind: expected one of {', '.join(_KINDS)}"
        raise InvalidParameter(msg)
    number = integer_in(by.partition("/")[2]) or 0
    if by and (_BY.fullmatch(by) is None or number > INT64_MAX):
        msg = "by: expected a key or a person, such as key/3 or person/2"
        raise InvalidParameter(msg)
    types = _OF_RESOURCES & readable_types(visit.caller.scopes)
    return ActivityFilter(
        sorted(each for each in types if kind in ("", kind_of(each))),
        visit.caller.environment if kind in ("", _KEYS) else None,
        by,
        *_day(typed["day"]),
    )


def _day(text: str) -> tuple[Milliseconds, Milliseconds]:
    """Return the beginning and the end of a day; all times if there is no text."""
    if not text:
        return 0, LAST_MOMENT
    try:
        began = datetime.fromisoformat(text if _DATE.fullmatch(text) else "")
    except ValueError:
        msg = "day: expected a date such as 2026-12-31"
        raise InvalidParameter(msg) from None
    since = int(began.replace(tzinfo=UTC).timestamp()) * SECOND
    return since, since + DAY


def _before(visit: PageRequest) -> tuple[int, int] | None:
    """Return where in the events and in the changes the page begins, ``None`` at the newest."""
    events, changes = (integer_in(visit.form.text(name)) for name in ("before", "changes"))
    if events is None or changes is None:
        return None
    return min(max(events, 0), INT64_MAX), min(max(changes, 0), INT64_MAX)


async def _callers(visit: PageRequest, by: str) -> list[tuple[str, str]]:
    """Return the people and keys to choose from; the one that is wanted is among them."""
    store, environment = visit.services.store, visit.caller.environment
    found = {
        f"{'person' if each.role else 'key'}/{each.id}": each.name
        for each in await newest_callers(store, environment, _OFFERED)
    }
    shown = {each: f"{name} ({each.replace('/', ' ')})" for each, name in found.items()}
    if by and by not in shown:
        shown[by] = by.replace("/", " ")
    return sorted(shown.items(), key=lambda one: one[1].casefold())


async def _lines(visit: PageRequest, entries: Sequence[ActivityEntry]) -> list[HistoryLine]:
    events = [each.done for each in entries if isinstance(each.done, PastEvent)]
    changes = [each.done for each in entries if isinstance(each.done, CallerChange)]
    told = iter(await lines_of(visit, events, names_it=True))
    changed = iter(await lines_of_changes(visit, changes, names_it=True))
    lines = []
    for entry in entries:
        line = next(told if isinstance(entry.done, PastEvent) else changed)
        lines.append(line.with_others(entry.others))
    return lines


PAGES = (ConsolePage("GET", "/activity", _show, "listKeys", _show),)
