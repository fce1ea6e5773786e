"""Events in words: what somebody did, as a sentence goes on after their name."""

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from markupsafe import Markup
from msgspec import UNSET, json

from petstore.clock import Milliseconds, milliseconds
from petstore.console.numbers import shown_money
from petstore.console.templates import shown_time
from petstore.events.model import Event, author_text

_LABELS = {
    "categoryId": "category",
    "shipDate": "ship date",
    "amount": "price",
    "perMinute": "limit a minute",
    "perDay": "limit a day",
    "allowedNetworks": "networks",
    "expiresAt": "end",
    "bannedUntil": "end of the ban",
}
# What says nothing beside another member.
_IMPLIED = {"amount": {"currency"}, "plan": {"perMinute", "perDay"}, "expiresAt": {"state"}}
_MOMENTS = ("Date", "At", "Until")
_NONE: tuple[Any, ...] = (None, [])
_IT = {"key": Markup("this key"), "person": Markup("this person")}
_PAGES = {
    "pet": ("/pets/", "listPets"),
    "order": ("/orders/", "getOrder"),
    "category": ("/categories/", "getCategory"),
    "key": ("/keys/", "getKey"),
    "person": ("/people/", "getPerson"),
}
_VERBS = {
    "pet.created": "added",
    "pet.deleted": "deleted",
    "category.created": "added",
    "category.deleted": "deleted",
    "order.approved": "approved",
    "order.delivered": "delivered",
    "order.cancelled": "cancelled",
    "key.created": "added",
    "key.revoked": "revoked",
    "person.created": "added",
}
_ACTIONS = {
    "key.rotated": Markup("gave {} a new token"),
    "key.unbanned": Markup("lifted the ban of {}"),
    "person.invited": Markup("made a password link for {}"),
}
_STATES: dict[tuple[Any, Any], Markup] = {
    ("invited", "active"): Markup("set the first password of {}"),
    ("invited", "disabled"): Markup("disabled {}"),
    ("active", "disabled"): Markup("disabled {}"),
    ("disabled", "invited"): Markup("enabled {}"),
    ("disabled", "active"): Markup("enabled {}"),
}
_BY_ORDER = {
    "order.placed": Markup("reserved {it} with {order}"),
    "order.delivered": Markup("sold {it} with {order}"),
    "order.cancelled": Markup("cancelled {order}, so {it} is available again"),
    "order.lapsed": Markup("made {it} available again, because {order} lapsed"),
}
_MOVED: dict[tuple[Any, Any], Markup] = {
    ("available", "sold"): Markup("sold {}"),
    ("pending", "sold"): Markup("sold {}"),
    ("pending", "available"): Markup("made {} available again"),
    ("sold", "available"): Markup("made {} available again"),
}


class PastEvent(NamedTuple):
    """An event as the console tells it: decoded, and with its author as text."""

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


def past_event(event: Event) -> PastEvent:
    """Return an event of the feed as the console tells it."""
    return PastEvent(
        *(event.sequence, event.id, event.type),
        milliseconds(datetime.fromisoformat(event.timestamp)),
        event.resource,
        json.decode(event.data),
        None if event.previous is UNSET else json.decode(event.previous),
        "service" if event.actor is UNSET else author_text(event.actor),
        event.request_id or None,
    )


class SentenceFacts(NamedTuple):
    """What sentences tell beside the events themselves, and the person may read.

    ``orders`` has the event of the order that changed an animal, by the sequence of the animal's.
    ``categories`` and ``animals`` have names. A resource is linked if the person ``may`` open its
    page.
    """

    home: str
    may: Callable[[str], bool]
    orders: Mapping[int, PastEvent] = {}
    categories: Mapping[int, str] = {}
    animals: Mapping[int, str] = {}


def sentence(event: PastEvent, facts: SentenceFacts, *, names_it: bool = False) -> Markup:
    """Return what the author of an event did, such as ``sold it``.

    It names the resource if it ``names_it``: there are sentences about others beside it.
    """
    kind = event.resource.partition("/")[0]
    it = _link(event, facts) if names_it else _IT.get(kind, Markup("it"))
    told = _about_order(event, facts, it) or _about_caller(event, it)
    if told is not None:
        return told
    order = facts.orders.get(event.sequence)
    if order is not None and order.type in _BY_ORDER:
        return _BY_ORDER[order.type].format(it=it, order=_link(order, facts))
    verb = _VERBS.get(event.type)
    if verb is not None:
        return Markup("{} {}").format(verb, it)
    if not event.previous:  # of a newer version
        return Markup("{}: {}").format(event.type, it)
    of_it = Markup(" of {}").format(it) if names_it else Markup("")
    changes = [_change(event, name, facts, it, of_it) for name in _told(event.previous)]
    return Markup(" and ").join(changes)


def begins_order(event: PastEvent) -> bool:
    """Return whether an event is the first one of an order: a sale begins as a delivery."""
    is_sale = event.type == "order.delivered" and event.previous is None
    return is_sale or event.type == "order.placed"


def _about_order(event: PastEvent, facts: SentenceFacts, it: Markup) -> Markup | None:
    """Return what happened to an order, ``None`` if the members that changed say it."""
    if begins_order(event):
        animal = _animal(event.data.get("petId"), facts)
        if event.type == "order.placed":
            return Markup("placed {} for {}").format(it, animal)
        return Markup("sold {} with {}").format(animal, it)
    if event.type == "order.lapsed":
        return Markup("cancelled {}, because nobody approved it in time").format(it)
    if event.type == "order.updated" and not event.previous:
        return Markup("changed the buyer or the note of {}").format(it)
    return None


def _about_caller(event: PastEvent, it: Markup) -> Markup | None:
    """Return what happened to a key or a person, ``None`` if the members that changed say it."""
    if event.type in _ACTIONS:
        return _ACTIONS[event.type].format(it)
    if event.type != "person.updated" or len(event.previous or ()) > 1:
        return None
    is_own = event.actor == event.resource
    if not event.previous:
        return (
            Markup("set a new password") if is_own else Markup("set the password of {}").format(it)
        )
    if "state" not in event.previous:
        return None
    if is_own and event.previous["state"] == "invited":
        return Markup("set a password with a link")
    move = _STATES.get((event.previous["state"], event.data["state"]))
    return None if move is None else move.format(it)


def _told(members: Collection[str]) -> list[str]:
    implied = {name for each in members for name in _IMPLIED.get(each, ())}
    return [name for name in members if name not in implied]


def _change(event: PastEvent, name: str, facts: SentenceFacts, it: Markup, of_it: Markup) -> Markup:
    before, after = (event.previous or {})[name], event.data.get(name)
    if name == "status" and (before, after) in _MOVED:
        return _MOVED[before, after].format(it)
    label = _LABELS.get(name, name)
    if after in _NONE:
        return Markup("removed the {}{}").format(label, of_it)
    if name == "amount" and "currency" in event.data:
        return _price_change(event, of_it)
    new = _value(name, after, facts)
    if name == "name" and of_it:
        return Markup("renamed {} to {}").format(_value(name, before, facts), it)
    if before in _NONE:
        return Markup("set the {}{} to {}").format(label, of_it, new)
    old = _value(name, before, facts)
    return Markup("changed the {}{} from {} to {}").format(label, of_it, old, new)


def _price_change(event: PastEvent, of_it: Markup) -> Markup:
    previous, data = event.previous or {}, event.data
    new = shown_money(data["amount"], data["currency"])
    if previous["amount"] is None:
        return Markup("set the price{} to {}").format(of_it, new)
    old = shown_money(previous["amount"], previous.get("currency") or data["currency"])
    return Markup("changed the price{} from {} to {}").format(of_it, old, new)


def _value(name: str, value: Any, facts: SentenceFacts) -> Markup:
    if name == "categoryId":
        value = facts.categories.get(value, value)
    elif name.endswith(_MOMENTS):
        return shown_time(value)
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


def _animal(pet_id: Any, facts: SentenceFacts) -> Markup:
    name = facts.animals.get(pet_id)
    shown = Markup("animal {}").format(pet_id) if name is None else _value("name", name, facts)
    return _linked("pet", pet_id, shown, facts)


def _linked(kind: str, number: Any, shown: Markup, facts: SentenceFacts) -> Markup:
    path, operation = _PAGES.get(kind, ("", ""))
    if not path or not facts.may(operation):
        return shown
    return Markup('<a href="{}{}{}">{}</a>').format(facts.home, path, number, shown)
