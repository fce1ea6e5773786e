"""The history of a resource, and of the store, in words: who changed what, when."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from markupsafe import Markup
from msgspec import UNSET, json

from petstore.clock import Milliseconds, milliseconds
from petstore.console.forms import FieldSet, in_words
from petstore.console.numbers import money_in_words
from petstore.console.page import PageRequest, Undo
from petstore.console.templates import shown_time
from petstore.errors import NotFound
from petstore.events.model import IN_FEED, Event, Position, author_text
from petstore.events.store import deliverers_of, orders_at
from petstore.http.messages import Response
from petstore.keys.store import names_of_callers

_WITHOUT_ID = {"service": "The service", "operator": "The operator"}
_READ_AT_ONCE = 100


class PastEvent(NamedTuple):
    sequence: int
    id: str
    type: str
    at: Milliseconds
    resource: str
    data: Mapping[str, Any]
    previous: Mapping[str, Any] | None
    actor: str
    request_id: str | None

    @property
    def members_before(self) -> dict[str, Any]:
        """The members of the resource before a change; before a deletion is what ``data`` has."""
        members = {**self.data, **(self.previous or {})}
        return {name: value for name, value in members.items() if value is not None}


class HistoryLine(NamedTuple):
    """``by`` is the key or person, such as ``person/2``; it is empty for the service."""

    id: str
    at: Milliseconds
    who: str
    by: str
    what: Markup
    members: frozenset[str]

    def with_others(self, others: int, *, is_cut: bool = False) -> "HistoryLine":
        """Return the line with how many more changes came with it; if ``is_cut``, or even more."""
        if not others:
            return self
        noun = "change" if others == 1 else "changes"
        count = f"at least {others}" if is_cut else str(others)
        return self._replace(what=Markup("{} and {} more {}").format(self.what, count, noun))


class History(NamedTuple):
    """The newest changes of a resource, of which ``last`` is the last event."""

    resource: str
    lines: Sequence[HistoryLine]
    now: Milliseconds
    last: PastEvent | None
    is_cut: bool

    def change_of(self, member: str) -> HistoryLine | None:
        return next((line for line in self.lines if member in line.members), None)


async def history_of(request: PageRequest, resource: str) -> History:
    events, following = await newest_events(request, {"resource": resource})
    lines = await lines_of(request, events)
    last = events[0] if events else None
    return History(resource, lines, request.services.clock(), last, is_cut=bool(following))


async def newest_acts(
    request: PageRequest,
    query: Mapping[str, Any],
    most: int,
    cursor: str = "",
    *,
    pages: int = 10,
    not_by: str = "",
) -> tuple[list[HistoryLine], str]:
    events: list[PastEvent] = []
    acts: list[list[PastEvent]] = []
    for _ in range(pages):
        found, cursor = await newest_events(request, query, cursor=cursor)
        events += [each for each in found if each.actor != not_by]
        acts = [list(act) for _, act in groupby(events, _request_of)]
        if len(acts) > most or not (found and cursor):
            break
    is_cut = bool(cursor) and len(acts) <= most
    if len(acts) > most:
        acts = acts[:most]
        last = acts[-1][-1]
        cursor = IN_FEED.encode(Position.behind(last.sequence, last.id))
    lines = await lines_of(request, [act[0] for act in acts], names_it=True)
    told = [
        line.with_others(
            sum(each.type == act[0].type for each in act[1:]), is_cut=is_cut and act is acts[-1]
        )
        for line, act in zip(lines, acts, strict=True)
    ]
    return told, cursor


async def newest_events(
    request: PageRequest, query: Mapping[str, Any], limit: int = _READ_AT_ONCE, cursor: str = ""
) -> tuple[list[PastEvent], str]:
    """Return events, the newest first, and the cursor of earlier ones."""
    newest = {**query, "sort": "-sequence", "limit": limit, "cursor": cursor or None}
    found = await request.execute("listEvents", query=newest)
    return [_past_event(each) for each in found.value], found.next


def _request_of(event: PastEvent) -> object:
    """Return what the events of one act share: an order comes right before its pet."""
    is_move = event.type in _BY_ORDER
    if event.request_id is None:
        return event.sequence + is_move
    return event.actor, event.request_id, "pet.updated" if is_move else event.type


def deleted_page(
    request: PageRequest,
    history: History,
    gone: NotFound,
    fields: FieldSet,
    undo: Undo | None = None,
) -> Response:
    """Show the history that is kept, and what was typed to change the resource meanwhile."""
    if not history.lines:
        raise NotFound(gone.message)
    request.error = gone
    unsaved = {fields.labels[key]: text for key, text in fields.edit(request.form).changes.items()}
    return request.page("gone.html", history=history, unsaved=unsaved, undo=undo)


async def lines_of(
    request: PageRequest, events: Sequence[PastEvent], *, names_it: bool = False
) -> list[HistoryLine]:
    moved = [
        each
        for each in events
        if each.type == "pet.updated" and [*(each.previous or ())] == ["status"]
    ]
    orders = await _orders_before(request, moved) if moved else {}
    ids = {
        category_id
        for each in events
        if each.previous and "categoryId" in each.previous
        for category_id in (each.previous["categoryId"], each.data["categoryId"])
    }
    begun = {each.data["petId"] for each in events if begins_order(each)}
    pets = {pet_id: pet.name for pet_id, pet in (await request.pets_of(begun)).items()}
    categories = await request.category_names(ids)
    facts = SentenceFacts(request.home, request.time_zone, orders, categories, pets)
    names = await names_of(request, {each.actor for each in events})
    return [
        HistoryLine(
            f"event-{each.sequence}",
            each.at,
            names[each.actor],
            each.actor if "/" in each.actor else "",
            sentence(each, facts, names_it=names_it),
            frozenset(each.previous or ()),
        )
        for each in events
    ]


async def sellers_of(request: PageRequest, orders: Collection[int]) -> dict[int, str]:
    """Return who delivered orders, by their ids, as far as events are kept."""
    found = await deliverers_of(request.services.store, orders)
    names = await names_of(request, {*found.values()})
    return {order_id: names[author] for order_id, author in found.items()}


async def _orders_before(request: PageRequest, events: Iterable[PastEvent]) -> dict[int, PastEvent]:
    """Return the events of orders that changed pets, by the sequences of the events of the pets."""
    pets = {each.sequence: each for each in events}
    found = await orders_at(request.services.store, [sequence - 1 for sequence in pets])
    orders = {each.sequence + 1: _past_event(each) for each in found}
    return {
        sequence: order
        for sequence, order in orders.items()
        if pets[sequence].resource == f"pet/{order.data.get('petId')}"
    }


async def names_of(request: PageRequest, authors: Collection[str]) -> dict[str, str]:
    ids = {author: int(author.partition("/")[2]) for author in authors if "/" in author}
    found = await names_of_callers(request.services.store, {*ids.values()}) if ids else {}
    return _WITHOUT_ID | {
        author: found.get(number, author.replace("/", " ")) for author, number in ids.items()
    }


# Events in words: what was done, as a sentence continues after a name

_LABELS = {"categoryId": "category", "amount": "price", "expiresAt": "end"}
_LABELS |= {"perMinute": "limit a minute", "perDay": "limit a day"}
# What says nothing beside another member.
_IMPLIED = {"amount": {"currency"}, "plan": {"perMinute", "perDay"}, "expiresAt": {"state"}}
_MOMENTS = ("Date", "At", "Until")
_NONE: tuple[Any, ...] = (None, [])
_IT = {"key": Markup("this key"), "person": Markup("this person")}
_PAGES = {
    "pet": "/pets/",
    "order": "/orders/",
    "category": "/categories/",
    "key": "/keys/",
    "person": "/people/",
}
_ACTIONS = {
    "key.rotated": Markup("gave {} a new token"),
    "key.unbanned": Markup("lifted the ban of {}"),
    "person.invited": Markup("created a password link for {}"),
}
_BY_ORDER = {
    "order.placed": Markup("reserved {it} with {order}"),
    "order.delivered": Markup("sold {it} with {order}"),
    "order.returned": Markup("returned {order}, so {it} is available again"),
    "order.cancelled": Markup("cancelled {order}, so {it} is available again"),
    "order.lapsed": Markup("made {it} available again, because {order} lapsed"),
}
_MOVED = {"sold": Markup("sold {}"), "available": Markup("made {} available again")}


def _past_event(event: Event) -> PastEvent:
    return PastEvent(
        *(event.sequence, event.id, event.type),
        milliseconds(datetime.fromisoformat(event.timestamp)),
        event.resource,
        json.decode(event.data),
        None if event.previous is UNSET else json.decode(event.previous),
        author_text(event.actor),
        event.request_id or None,
    )


class SentenceFacts(NamedTuple):
    """Names for sentences, and the events of orders by the sequence of their pets' events."""

    home: str
    zone: ZoneInfo
    orders: Mapping[int, PastEvent] = {}
    categories: Mapping[int, str] = {}
    pets: Mapping[int, str] = {}


def sentence(event: PastEvent, facts: SentenceFacts, *, names_it: bool = False) -> Markup:
    kind, _, done = event.type.partition(".")
    it = _link(event, facts) if names_it else _IT.get(kind, Markup("it"))
    told = _about_order(event, facts, it) or _about_caller(event, it)
    if told is not None:
        return told
    order = facts.orders.get(event.sequence)
    if order is not None and order.type in _BY_ORDER:
        return _BY_ORDER[order.type].format(it=it, order=_link(order, facts))
    if done != "updated":
        return Markup("{} {}").format("added" if done == "created" else done, it)
    of_it = Markup(" of {}").format(it) if names_it else Markup("")
    members = event.previous or {}
    implied = {name for each in members for name in _IMPLIED.get(each, ())}
    told_of = [name for name in members if name not in implied]
    changes = [_change(event, name, facts, it, of_it) for name in told_of]
    return Markup(" and ").join(changes)


def begins_order(event: PastEvent) -> bool:
    is_sale = event.type == "order.delivered" and event.previous is None
    return is_sale or event.type == "order.placed"


def _about_order(event: PastEvent, facts: SentenceFacts, it: Markup) -> Markup | None:
    if begins_order(event):
        pet_id: Any = event.data.get("petId")
        name = Markup("<bdi>{}</bdi>").format(facts.pets.get(pet_id, f"pet {pet_id}"))
        pet = _linked("pet", pet_id, name, facts)
        if event.type == "order.placed":
            return Markup("placed {} for {}").format(it, pet)
        return Markup("sold {} with {}").format(pet, it)
    if event.type == "order.lapsed":
        return Markup("cancelled {}, because it was not approved in time").format(it)
    if event.type == "order.updated" and not event.previous:
        return Markup("changed the buyer or the note of {}").format(it)
    return None


def _about_caller(event: PastEvent, it: Markup) -> Markup | None:
    if event.type in _ACTIONS:
        return _ACTIONS[event.type].format(it)
    if event.type != "person.updated" or event.previous:
        return None
    is_own = event.actor == event.resource
    return Markup("set a new password") if is_own else Markup("set the password of {}").format(it)


def _change(event: PastEvent, name: str, facts: SentenceFacts, it: Markup, of_it: Markup) -> Markup:
    before, after = (event.previous or {})[name], event.data.get(name)
    if name == "status" and before and after in _MOVED:
        return _MOVED[after].format(it)
    label = _LABELS.get(name) or in_words(name).lower()
    if after in _NONE:
        return Markup("removed the {}{}").format(label, of_it)
    new = _value(name, after, facts, event.data)
    if name == "name" and of_it:
        return Markup("renamed {} to {}").format(
            _value(name, before, facts, event.members_before), it
        )
    if before in _NONE:
        return Markup("set the {}{} to {}").format(label, of_it, new)
    old = _value(name, before, facts, event.members_before)
    return Markup("changed the {}{} from {} to {}").format(label, of_it, old, new)


def _value(name: str, value: Any, facts: SentenceFacts, beside: Mapping[str, Any]) -> Markup:
    """Return a member in words; ``beside`` has the others that it had then."""
    if name == "categoryId":
        value = facts.categories.get(value, value)
    elif name in ("amount", "refund") and "currency" in beside:
        value = money_in_words(value, beside["currency"])
    elif name.endswith(_MOMENTS):
        return shown_time(value, facts.zone)
    elif isinstance(value, list):
        value = ", ".join(value)
    return Markup("<bdi>{}</bdi>").format(value)


def _link(event: PastEvent, facts: SentenceFacts) -> Markup:
    kind, _, number = event.resource.partition("/")
    if kind == "order":
        return _linked(kind, number, Markup("order {}").format(number), facts)
    shown = Markup("<bdi>{}</bdi>").format(event.data.get("name", event.resource))
    link = _linked(kind, number, shown, facts)
    return Markup("the {} {}").format(kind, link) if kind in _IT else link


def _linked(kind: str, number: Any, shown: Markup, facts: SentenceFacts) -> Markup:
    path = _PAGES.get(kind)
    if path is None:
        return shown
    return Markup('<a href="{}{}{}">{}</a>').format(facts.home, path, number, shown)
