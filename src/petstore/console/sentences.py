"""Events in words: what somebody did, as a sentence goes on after their name."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from markupsafe import Markup

from petstore.console.numbers import shown_money
from petstore.console.templates import shown_time
from petstore.events.history import PastEvent

_LABELS = {"categoryId": "category", "shipDate": "ship date", "amount": "price"}
# It says nothing beside the price.
_WITH_PRICE = "currency"
_MOMENTS = ("Date", "At", "Until")
_IT = Markup("it")
_PAGES = {"pet": "/pets/", "order": "/orders/", "category": "/categories/"}
_VERBS = {
    "pet.created": "added",
    "pet.deleted": "deleted",
    "category.created": "added",
    "category.deleted": "deleted",
    "order.approved": "approved",
    "order.delivered": "delivered",
    "order.cancelled": "cancelled",
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
    it = _link(event, facts) if names_it else _IT
    about_order = _about_order(event, facts, it)
    if about_order is not None:
        return about_order
    order = facts.orders.get(event.sequence or 0)
    if order is not None and order.type in _BY_ORDER:
        return _BY_ORDER[order.type].format(it=it, order=_link(order, facts))
    verb = _VERBS.get(event.type)
    if verb is not None:
        return Markup("{} {}").format(verb, it)
    if not event.previous:  # of a newer version
        return Markup("{}: {}").format(event.type, it)
    changes = [_change(event, name, facts, it) for name in _told(event.previous)]
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


def _told(members: Iterable[str]) -> list[str]:
    """Return the members that a sentence is about: with a price, its currency is no other one."""
    names = [*members]
    return [name for name in names if name != _WITH_PRICE or "amount" not in names]


def _change(event: PastEvent, name: str, facts: SentenceFacts, it: Markup) -> Markup:
    """Return how a member changed."""
    before, after = (event.previous or {})[name], event.data.get(name)
    if name == "status" and (before, after) in _MOVED:
        return _MOVED[before, after].format(it)
    label = _LABELS.get(name, name)
    of_it = "" if it == _IT else Markup(" of {}").format(it)
    if after is None:
        return Markup("removed the {}{}").format(label, of_it)
    if name == "amount" and "currency" in event.data:
        return _price_change(event, of_it)
    new = _value(name, after, facts)
    if name == "name" and of_it:
        return Markup("renamed {} to {}").format(_value(name, before, facts), it)
    if before is None:
        return Markup("set the {}{} to {}").format(label, of_it, new)
    old = _value(name, before, facts)
    return Markup("changed the {}{} from {} to {}").format(label, of_it, old, new)


def _price_change(event: PastEvent, of_it: Markup | str) -> Markup:
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
    return Markup("<bdi>{}</bdi>").format(value)


def _link(event: PastEvent, facts: SentenceFacts) -> Markup:
    """Return the name of the resource of an event, with a link to its page."""
    kind, _, number = event.resource.partition("/")
    if kind == "order":
        shown = Markup("order {}").format(number)
    else:
        shown = Markup("<bdi>{}</bdi>").format(event.data.get("name", event.resource))
    return _linked(kind, number, shown, facts)


def _animal(pet_id: Any, facts: SentenceFacts) -> Markup:
    name = facts.animals.get(pet_id)
    shown = Markup("animal {}").format(pet_id) if name is None else _value("name", name, facts)
    return _linked("pet", pet_id, shown, facts)


def _linked(kind: str, number: Any, shown: Markup, facts: SentenceFacts) -> Markup:
    operation = {"pet": "listPets", "order": "getOrder", "category": "getCategory"}.get(kind)
    if operation is None or not facts.may(operation):
        return shown
    return Markup('<a href="{}{}{}">{}</a>').format(facts.home, _PAGES[kind], number, shown)
