"""Events in words: what somebody did, as a sentence goes on after their name."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from markupsafe import Markup

from petstore.console.templates import shown_time
from petstore.events.history import PastEvent

_LABELS = {"categoryId": "category", "shipDate": "ship date"}
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
    ``categories`` has names. A resource is linked if the person ``may`` open its page.
    """

    home: str
    may: Callable[[str], bool]
    orders: Mapping[int, PastEvent] = {}
    categories: Mapping[int, str] = {}


def sentence(event: PastEvent, facts: SentenceFacts, *, names_it: bool = False) -> Markup:
    """Return what the author of an event did, such as ``sold it``.

    It names the resource if it ``names_it``: there are sentences about others beside it.
    """
    it = _link(event, facts) if names_it else _IT
    if event.type == "order.placed":
        animal = _animal(event.data.get("petId"), facts)
        return Markup("placed {} for {}").format(it, animal)
    if event.type == "order.lapsed":
        return Markup("cancelled {}, because nobody approved it in time").format(it)
    order = facts.orders.get(event.sequence or 0)
    if order is not None and order.type in _BY_ORDER:
        return _BY_ORDER[order.type].format(it=it, order=_link(order, facts))
    verb = _VERBS.get(event.type)
    if verb is not None:
        return Markup("{} {}").format(verb, it)
    if not event.previous:  # of a newer version
        return Markup("{}: {}").format(event.type, it)
    changes = [_change(event, name, facts, it) for name in event.previous]
    return Markup(" and ").join(changes)


def _change(event: PastEvent, name: str, facts: SentenceFacts, it: Markup) -> Markup:
    """Return how a member changed."""
    before, after = (event.previous or {})[name], event.data.get(name)
    if name == "status" and (before, after) in _MOVED:
        return _MOVED[before, after].format(it)
    label = _LABELS.get(name, name)
    of_it = "" if it == _IT else Markup(" of {}").format(it)
    if after is None:
        return Markup("removed the {}{}").format(label, of_it)
    new = _value(name, after, facts)
    if before is None:
        return Markup("set the {}{} to {}").format(label, of_it, new)
    old = _value(name, before, facts)
    return Markup("changed the {}{} from {} to {}").format(label, of_it, old, new)


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
    return _linked("pet", pet_id, Markup("animal {}").format(pet_id), facts)


def _linked(kind: str, number: Any, shown: Markup, facts: SentenceFacts) -> Markup:
    operation = {"pet": "listPets", "order": "getOrder", "category": "getCategory"}.get(kind)
    if operation is None or not facts.may(operation):
        return shown
    return Markup('<a href="{}{}{}">{}</a>').format(facts.home, _PAGES[kind], number, shown)
