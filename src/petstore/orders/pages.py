"""The pages of orders: the board, one order, and a new one."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import NamedTuple

from msgspec import UNSET, UnsetType

from petstore.clock import utc
from petstore.console.fields import Field, FieldSet, Texts, choice
from petstore.console.forms import Problem, number_or_text, typed_id
from petstore.console.history import History, history_of
from petstore.console.notices import Notice, Undo, change_notice
from petstore.console.page import ConsolePage, Handler, PageRequest, Refused
from petstore.console.templates import ago_in_words, duration, isolated
from petstore.errors import InvalidBody, NotFound, PetNotAvailable, PetstoreError, UnknownPet
from petstore.http.messages import Response
from petstore.interface.operation import Result
from petstore.orders.model import OPEN_STATUSES, Order, OrderStatus
from petstore.pets.model import Pet

_ON_A_PAGE = 50
_IN_A_LANE: dict[OrderStatus, int] = {
    "placed": 20,
    "approved": 20,
    "delivered": 10,
    "cancelled": 10,
}
_BOARD = {"board": "/orders"} | {status: f"/orders?status={status}" for status in _IN_A_LANE}
_WITHOUT_ZONE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?")


class Card(NamedTuple):
    """An order as pages show it, and its animal if it exists and the person may see it."""

    order: Order
    pet: Pet | None
    now: datetime

    @property
    def animal(self) -> str:
        """The name of the animal."""
        return f"animal {self.order.pet_id}" if self.pet is None else self.pet.name

    @property
    def seen(self) -> Mapping[str, str]:
        """The hidden fields of a form that changes the order: which version the person saw."""
        until = self.order.reserved_until
        return {
            "version": Result(self.order).version,
            "seen": self.order.status,
            "until": "" if until is UNSET else until.isoformat(),
        }


class Lane(NamedTuple):
    """Orders of one status, or of one animal if ``status`` is empty; ``cursor`` leads on."""

    status: str
    cards: Sequence[Card]
    cursor: str


# The board


async def _board(visit: PageRequest, error: PetstoreError | None = None) -> Response:
    wanted = _FILTERS.typed(visit.form)
    form = _FILTERS.new(visit.form, error)
    lanes: list[Lane] = []
    if error is None:
        if wanted["id"]:
            return await visit.redirect(f"/orders/{await _found(visit, wanted['id'])}")
        lanes = await _lanes(visit, wanted)
    return visit.page("orders.html", error=error, lanes=lanes, form=form)


async def _found(visit: PageRequest, typed: str) -> int:
    """Return the id of an order that exists, or raise ``NotFound``."""
    order_id = typed_id(typed) or 0  # which no order has
    try:
        await visit.execute("getOrder", path_id=order_id)
    except NotFound:
        msg = f"id: There is no order {typed}."
        raise NotFound(msg) from None
    return order_id


async def _lanes(visit: PageRequest, wanted: Texts) -> list[Lane]:
    """Return the lane that the filters name, or the beginning of every lane."""
    status, pet_id = wanted["status"], wanted["petId"]
    if status or pet_id:
        return [await _lane(visit, status, pet_id, _ON_A_PAGE, visit.form.text("cursor"))]
    return [await _lane(visit, status, "", limit, "") for status, limit in _IN_A_LANE.items()]


async def _lane(visit: PageRequest, status: str, pet_id: str, limit: int, cursor: str) -> Lane:
    """Return a lane: work that waits with the oldest first, everything else with the newest."""
    query = {
        "status": status or None,
        "petId": number_or_text(pet_id) if pet_id else None,
        "limit": limit,
        "cursor": cursor or None,
        "sort": "id" if status in OPEN_STATUSES else "-id",
    }
    found = await visit.execute("listOrders", query=query)
    return Lane(status, await _cards(visit, found.value), found.next)


async def _cards(visit: PageRequest, orders: Sequence[Order]) -> list[Card]:
    now = utc(visit.services.clock())
    pets: dict[int, Pet] = {}
    if orders and visit.may("listPets"):
        ids = sorted({order.pet_id for order in orders})
        found = await visit.execute("listPets", query={"id": ids, "limit": len(ids)})
        pets = {pet.id: pet for pet in found.value}
    return [Card(order, pets.get(order.pet_id), now) for order in orders]


# One order


async def _show(
    visit: PageRequest, error: PetstoreError | None = None, wanted: OrderStatus | None = None
) -> Response:
    """Return the page of the order as it is now, and what was wrong with a change of it.

    ``wanted`` is the status that it did not get, ``None`` if the change was another one.
    """
    order: Order = (await visit.execute("getOrder")).value
    (card,) = await _cards(visit, [order])
    history = await history_of(visit, f"order/{order.id}")
    form = _SHIP_DATE.shown(_SHIP_DATE.texts(order), "", visit.form, error)
    if error is not None and not isinstance(error, InvalidBody):
        form = form._replace(problem=Problem("", _conflict(visit, card, history, wanted)))
    return visit.page("order.html", error=error, card=card, form=form, history=history)


async def _move(visit: PageRequest, status: OrderStatus) -> Response:
    changed = await visit.execute("updateOrder", {"status": status})
    (card,) = await _cards(visit, [changed.value])
    path = _BOARD.get(visit.form.text("back")) or _page_after(visit, card.order)
    return await visit.redirect(path, _told(card, changed.version))


def _told(card: Card, version: str) -> Notice:
    """Return what the page says about an order that has just moved, and got this version."""
    order, animal = card.order, isolated(card.animal)
    if order.status == "approved":
        return Notice(f"Order {order.id} for {animal} is approved. It has no time limit now.")
    if order.status == "delivered":
        return Notice(f"Order {order.id} is delivered. {animal} is sold.")
    fields = {
        "petId": str(order.pet_id),
        "shipDate": _exact(order.ship_date),
        "once": version,
    }
    return Notice(
        f"Order {order.id} is cancelled. {animal} is available again.",
        Undo("/orders", fields, "Reserve again"),
    )


async def _set_ship_date(visit: PageRequest) -> Response:
    path, typed = f"/orders/{visit.path_id}", _SHIP_DATE.typed(visit.form)
    before: Order = (await visit.execute("getOrder")).value
    if typed == _SHIP_DATE.texts(before):
        return await visit.redirect(path)
    changed = await visit.execute("updateOrder", _SHIP_DATE.values(typed))
    (card,) = await _cards(visit, [changed.value])
    undo = Undo(f"{path}/ship-date", {"shipDate": _exact(before.ship_date), **card.seen})
    name = f"Order {before.id}"
    notice = change_notice(name, f"{name} has another ship date.", undo, visit.form.text("undo"))
    return await visit.redirect(path, notice)


def _conflict(visit: PageRequest, card: Card, history: History, wanted: OrderStatus | None) -> str:
    """Return why an order did not change: what others, or the time, did since the person looked."""
    order, until = card.order, visit.form.text("until")
    if order.status == wanted:
        return f"Order {order.id} is {order.status} already."
    if order.status == "cancelled" and (ended := _ended(until, card.now)):
        return f"The time to approve order {order.id} ended {ended} ago. The order is cancelled."
    if order.status != visit.form.text("seen"):
        line, done = history.change_of("status"), f"{order.status} order {order.id}"
    else:
        line, done = history.change_of("shipDate"), _dated(order)
    told = f"Somebody else {done} while this page was open."
    if line is not None:
        ago = ago_in_words(history.now - line.at)
        told = f"{isolated(line.who)} {done} {ago}, while this page was open."
    if order.status in OPEN_STATUSES:
        return f"{told} Your change is not made. If it is still right, make it again."
    return told


def _dated(order: Order) -> str:
    """Return what somebody did who changed the ship date of an order to what it is."""
    if order.ship_date is UNSET:
        return f"removed the ship date of order {order.id}"
    shown = _shown(order).replace("T", " ")
    return f"set the ship date of order {order.id} to {shown} UTC"


def _ended(until: str, now: datetime) -> str:
    """Return how long ago a reservation ended, empty if it has not."""
    try:
        span = now - datetime.fromisoformat(until)
    except (ValueError, TypeError):  # not a moment, or one without a zone
        return ""
    return duration(span) if span >= timedelta(0) else ""


# A new order


async def _new(visit: PageRequest, error: PetstoreError | None = None) -> Response:
    form = _FORM.new(visit.form, error)
    typed = form.typed
    pet = await visit.find_pet(typed_id(typed["petId"]))
    if error is not None:
        form = form._replace(problem=_refused(error, typed["petId"], pet))
    minutes = visit.services.reservation_minutes
    return visit.page(
        "new_order.html",
        error=error,
        form=form,
        pet=pet,
        lasts=duration(timedelta(minutes=minutes)) if minutes else "",
    )


def _page_after(visit: PageRequest, order: Order) -> str:
    """Return the page that follows a change of an order: the order, if the person may see it."""
    if visit.may("getOrder"):
        return f"/orders/{order.id}"
    return f"/pets/{order.pet_id}" if visit.may("listPets") else "/orders/new"


async def _place(visit: PageRequest) -> Response:
    body = _FORM.body(_FORM.typed(visit.form))
    placed = await visit.execute("placeOrder", body)
    (card,) = await _cards(visit, [placed.value])
    path = f"/orders/{card.order.id}"
    notice = Notice(
        f"Order {card.order.id} is placed. {isolated(card.animal)} is reserved.",
        Undo(f"{path}/cancel", card.seen, "Cancel it"),
    )
    return await visit.redirect(_page_after(visit, card.order), notice)


def _refused(error: PetstoreError, pet_id: str, pet: Pet | None) -> Problem | None:
    if isinstance(error, UnknownPet):
        text = f"There is no animal {pet_id}."
    elif isinstance(error, PetNotAvailable) and pet is not None:
        status = pet.status or "without a status"
        text = f"{isolated(pet.name)} is {status} now. Only an available animal can be reserved."
    else:
        return _FORM.problem(error)
    return Problem("petId", text, _PET_ID.label)


# Moments


def _moment(typed: str) -> str | None:
    """Return a typed moment as the interface takes it. Without a zone it is in UTC."""
    if _WITHOUT_ZONE.fullmatch(typed) is None:
        return typed or None
    return f"{typed}{':00' if typed.count(':') == 1 else ''}Z"


def _shown(order: Order) -> str:
    """Return the ship date as the field of a form has it: in UTC, to the minute."""
    moment = order.ship_date
    if moment is UNSET:
        return ""
    try:
        return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="minutes")
    except OverflowError:  # the first or the last day of the calendar
        return moment.isoformat()


def _exact(moment: datetime | UnsetType) -> str:
    return "" if moment is UNSET else moment.isoformat()


# The forms

_PET_ID = Field(
    *("petId", "Animal number"),
    parse=number_or_text,
    attributes={"inputmode": "numeric", "required": True},
)
_SHIP_DATE = FieldSet(
    Field("shipDate", "Ship date", _shown, _moment, "moment", hint="May be empty.")
)
_FORM = FieldSet(_PET_ID, *_SHIP_DATE.fields)
_FILTERS = FieldSet(
    choice("status", "Status", ("", "any"), *((status, status) for status in _IN_A_LANE)),
    _PET_ID._replace(type="search", attributes={"inputmode": "numeric"}),
    Field("id", "Order number", type="search", attributes={"inputmode": "numeric"}),
)


def _to(status: OrderStatus) -> tuple[Handler, str, Refused]:
    """Return the handler of a move to a status, its operation, and what shows its refusal."""
    return partial(_move, status=status), "updateOrder", partial(_show, wanted=status)


PAGES = (
    ConsolePage("GET", "/orders", _board, "listOrders", _board),
    ConsolePage("POST", "/orders", _place, "placeOrder", _new),
    ConsolePage("GET", "/orders/new", _new, "placeOrder"),
    ConsolePage("GET", "/orders/{orderId}", _show, "getOrder"),
    ConsolePage("POST", "/orders/{orderId}/approve", *_to("approved")),
    ConsolePage("POST", "/orders/{orderId}/deliver", *_to("delivered")),
    ConsolePage("POST", "/orders/{orderId}/cancel", *_to("cancelled")),
    ConsolePage("POST", "/orders/{orderId}/ship-date", _set_ship_date, "updateOrder", _show),
)
