"""The history of a resource as its page shows it: who changed what, and when."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup

from petstore.categories.store import names_of_categories
from petstore.clock import Milliseconds
from petstore.console.notices import Undo
from petstore.console.page import HOME, PageRequest
from petstore.console.sentences import SentenceFacts, begins_order, sentence
from petstore.domain.decoding import integer_in
from petstore.domain.fields import INT64_MAX
from petstore.errors import NotFound
from petstore.events.history import PastEvent, orders_before, read_latest
from petstore.events.model import Actor, actor_of
from petstore.http.messages import Response
from petstore.keys.status import names_of_callers
from petstore.pets.store import names_of_pets

_NOUNS = {"pet": "animal", "category": "category"}
_SERVICE = "The service"


class HistoryLine(NamedTuple):
    """An event in words: ``who`` did ``what``.

    ``by`` is the key or person, such as ``person/2``; it is empty for the service. ``members`` are
    those that changed. ``undo`` takes the event back.
    """

    id: str
    type: str
    at: Milliseconds
    who: str
    by: str
    what: Markup
    members: frozenset[str]
    undo: Undo | None = None

    def with_others(self, others: int, *, is_cut: bool = False) -> "HistoryLine":
        """Return the line with how many more changes came with it; if ``is_cut``, or even more."""
        if not others:
            return self
        noun = "change" if others == 1 else "changes"
        count = f"at least {others}" if is_cut else str(others)
        return self._replace(what=Markup("{} and {} more {}").format(self.what, count, noun))


class History(NamedTuple):
    """The newest events of a resource, the newest first.

    ``earlier`` is the sequence before which there are more, and ``is_latest`` whether there are
    none after these. ``last`` is the last event of all, if it is among these.
    """

    resource: str
    lines: Sequence[HistoryLine]
    earlier: int | None
    is_latest: bool
    now: Milliseconds
    last: PastEvent | None = None

    def with_undo(self, undo: Undo | None) -> "History":
        """Return the history with what takes the last event back."""
        if undo is None:
            return self
        return self._replace(lines=[self.lines[0]._replace(undo=undo), *self.lines[1:]])

    @property
    def kind(self) -> str:
        """The kind of the resource, such as ``pet``."""
        return self.resource.partition("/")[0]

    def change_of(self, member: str) -> HistoryLine | None:
        """Return the newest change of a member of the resource."""
        return next((line for line in self.lines if member in line.members), None)

    def newest(self, *types: str) -> HistoryLine | None:
        """Return the newest event, if it has one of these types."""
        return next((line for line in self.lines[:1] if line.type in types), None)


async def history_of(visit: PageRequest, resource: str) -> History:
    """Return the history of a resource that the person may read, from the address on.

    The address may have the sequence ``before`` which to begin.
    """
    before = place_of(visit)
    found = await read_latest(visit.services.store, resource, before)
    lines = await lines_of(visit, found.events)
    last = found.events[0] if found.events and before is None else None
    return History(resource, lines, found.earlier, before is None, visit.services.clock(), last)


def place_of(visit: PageRequest) -> int | None:
    """Return before which number the history of a page begins, ``None`` at the newest."""
    if visit.request.method == "POST":
        return None
    before = integer_in(visit.form.text("before"))
    return before if before is not None and 0 < before <= INT64_MAX else None


def gone_page(visit: PageRequest, history: History, gone: NotFound) -> Response:
    """Return the page of a resource that is gone, with its history if that is kept.

    Raises:
        NotFound: it is not: the resource may never have existed.
    """
    if not history.lines:
        raise NotFound(gone.message)
    kind, _, number = history.resource.partition("/")
    path = visit.home + visit.request.path.removeprefix(HOME)
    name = f"{_NOUNS[kind]} {number}"
    return visit.page("gone.html", error=gone, history=history, path=path, name=name)


async def lines_of(
    visit: PageRequest, events: Sequence[PastEvent], *, names_it: bool = False
) -> list[HistoryLine]:
    """Return events in words, as far as the person may read what they tell."""
    store = visit.services.store
    orders: dict[int, PastEvent] = {}
    if visit.may("getOrder"):
        moved = [each for each in events if each.type == "pet.updated" and _is_move(each)]
        orders = await orders_before(store, moved) if moved else {}
    categories: dict[int, str] = {}
    ids = {value for each in events for value in _category_ids(each)}
    if ids and visit.may("listCategories"):
        categories = await names_of_categories(store, ids)
    animals: dict[int, str] = {}
    if visit.may("listPets"):
        begun = {each.data["petId"] for each in events if begins_order(each)}
        animals = await names_of_pets(store, begun)
    facts = SentenceFacts(visit.home, visit.may, orders, categories, animals)
    names = await _names(visit, events)
    return [
        HistoryLine(
            f"event-{each.sequence or each.at}",
            each.type,
            each.at,
            names[each.actor],
            each.actor if each.actor and "/" in each.actor else "",
            sentence(each, facts, names_it=names_it),
            frozenset(each.previous or ()),
        )
        for each in events
    ]


async def is_by_order(visit: PageRequest, event: PastEvent) -> bool:
    """Return whether an order changed the animal of an event, or nobody knows that yet."""
    if not _is_move(event):
        return False
    return event.sequence is None or bool(await orders_before(visit.services.store, [event]))


def _is_move(event: PastEvent) -> bool:
    return event.previous is not None and [*event.previous] == ["status"]


def _category_ids(event: PastEvent) -> Iterable[int]:
    if event.previous is None or "categoryId" not in event.previous:
        return ()
    return event.previous["categoryId"], event.data["categoryId"]


async def _names(visit: PageRequest, events: Iterable[PastEvent]) -> dict[str | None, str]:
    """Return what to call the authors of events."""
    authors = {each.actor: actor_of(each.actor) for each in events if each.actor is not None}
    ids = {actor.id for actor in authors.values() if actor.id}
    found = await names_of_callers(visit.services.store, ids) if ids else {}
    names: dict[str | None, str] = {None: _SERVICE}
    for author, actor in authors.items():
        names[author] = _name_of(visit, actor, found) if actor.id else _SERVICE
    return names


def _name_of(visit: PageRequest, actor: Actor, names: Mapping[int, str]) -> str:
    """Return what to call a key or a person.

    A key is perhaps that of a customer, who does not learn the names of the staff and of others.
    """
    own = visit.caller
    if own.role is None and "keys:admin" not in own.scopes and actor.id != own.id:
        return "Another key" if actor.type == "key" else "Somebody of the shop"
    return names.get(actor.id or 0, f"{actor.type} {actor.id}")
