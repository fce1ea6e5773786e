"""The pages of orders: the board, one order, and a new one."""

import re
import secrets
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

from msgspec import UNSET, UnsetType

from petstore.api.entity_tags import entity_tag
from petstore.api.messages import encode_json
from petstore.clock import utc
from petstore.console.forms import Problem, problem_of, typed_id
from petstore.console.notices import Notice, Undo, change_notice
from petstore.console.page import Page, Visit
from petstore.console.templates import duration, isolated
from petstore.domain.orders import OPEN_STATUSES, Order, OrderStatus
from petstore.domain.pets import Pet
from petstore.errors import (
    Conflict,
    InvalidBody,
    InvalidParameter,
    NotFound,
    PetNotAvailable,
    PetstoreError,
    PreconditionFailed,
    UnknownPet,
)
from petstore.http.messages import Response

_LABELS = {"petId": "Animal number", "id": "Order number", "shipDate": "Ship date"}
_ON_A_PAGE = 50
_IN_A_LANE: dict[OrderStatus, int] = {
    "placed": 20,
    "approved": 20,
    "delivered": 10,
    "cancelled": 10,
}
_BOARD = {"board": "/orders"} | {status: f"/orders?status={status}" for status in _IN_A_LANE}
_TOO_LONG = 20
_WITHOUT_ZONE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?")


class Card(NamedTuple):
    """An order as pages show it, and its animal if it exists and the person may see it."""

    order: Order
    pet: Pet | None
    now: datetime

    @property
    def animal(self) -> str:
        """The name of the animal."""
        return f"animal {self.order.petId}" if self.pet is None else self.pet.name

    @property
    def seen(self) -> Mapping[str, str]:
        """The hidden fields of a form that changes the order: which version the person saw."""
        until = self.order.reservedUntil
        return {
            "version": entity_tag(encode_json(self.order)).decode("ascii"),
            "seen": self.order.status,
            "until": "" if until is UNSET else until.isoformat(),
        }


class Lane(NamedTuple):
    """Orders of one status, or of one animal if ``status`` is empty; ``cursor`` leads on."""

    status: str
    cards: Sequence[Card]
    cursor: str


# The board


async def _board(visit: Visit) -> Response:
    wanted = {name: visit.form.text(name) for name in ("status", "petId", "id")}
    problem = None
    lanes: list[Lane] = []
    try:
        if wanted["id"]:
            return await visit.redirect(f"/orders/{await _found(visit, wanted['id'])}")
        lanes = await _lanes(visit, wanted)
    except (InvalidParameter, NotFound) as error:
        problem = problem_of(error, _LABELS)
        return visit.page("orders.html", error.status, lanes=[], wanted=wanted, problem=problem)
    return visit.page("orders.html", lanes=lanes, wanted=wanted)


async def _found(visit: Visit, typed: str) -> int:
    """Return the id of an order that exists, or raise ``NotFound``."""
    order_id = typed_id(typed) or 0  # which no order has
    try:
        await visit.call("getOrder", path_id=order_id)
    except NotFound:
        msg = f"id: There is no order {typed}."
        raise NotFound(msg) from None
    return order_id


async def _lanes(visit: Visit, wanted: Mapping[str, str]) -> list[Lane]:
    """Return the lane that the filters name, or the beginning of every lane."""
    status, pet_id = wanted["status"], wanted["petId"]
    if status or pet_id:
        return [await _lane(visit, status, pet_id, _ON_A_PAGE, visit.form.text("cursor"))]
    return [await _lane(visit, status, "", limit, "") for status, limit in _IN_A_LANE.items()]


async def _lane(visit: Visit, status: str, pet_id: str, limit: int, cursor: str) -> Lane:
    """Return a lane: work that waits with the oldest first, everything else with the newest."""
    query = {
        "status": status or None,
        "petId": pet_id or None,
        "limit": limit,
        "cursor": cursor or None,
        "sort": "id" if status in OPEN_STATUSES else "-id",
    }
    found = await visit.call("listOrders", query=query)
    return Lane(status, await _cards(visit, found.value), found.cursor)


async def _cards(visit: Visit, orders: Sequence[Order]) -> list[Card]:
    now = utc(visit.services.clock())
    pets: dict[int, Pet] = {}
    if orders and visit.may("listPets"):
        ids = sorted({order.petId for order in orders})
        found = await visit.call("listPets", query={"id": ids, "limit": len(ids)})
        pets = {pet.id: pet for pet in found.value}
    return [Card(order, pets.get(order.petId), now) for order in orders]


# One order


async def _show(visit: Visit) -> Response:
    return await _order(visit)


async def _move(visit: Visit, status: OrderStatus) -> Response:
    tag = visit.form.text("version")
    try:
        changed = await visit.call(
            "updateOrder", path_id=visit.path_id, body={"status": status}, if_match=tag
        )
    except (Conflict, PreconditionFailed) as error:
        return await _order(visit, error, wanted=status)
    (card,) = await _cards(visit, [changed.value])
    path = _BOARD.get(visit.form.text("back")) or page_after(visit, card.order)
    return await visit.redirect(path, _told(card))


def page_after(visit: Visit, order: Order) -> str:
    """Return the page that follows a change of an order: the order, if the person may see it."""
    if visit.may("getOrder"):
        return f"/orders/{order.id}"
    return f"/pets/{order.petId}" if visit.may("listPets") else "/orders/new"


def _told(card: Card) -> Notice:
    """Return what the page says about an order that has just moved."""
    order, animal = card.order, isolated(card.animal)
    if order.status == "approved":
        return Notice(f"Order {order.id} for {animal} is approved. It has no time limit now.")
    if order.status == "delivered":
        return Notice(f"Order {order.id} is delivered. {animal} is sold.")
    ship_date = "" if order.shipDate is UNSET else order.shipDate.isoformat()
    fields = {
        "petId": str(order.petId),
        "shipDate": ship_date,
        "once": secrets.token_urlsafe(),
    }
    return Notice(
        f"Order {order.id} is cancelled. {animal} is available again.",
        Undo("/orders", fields, "Reserve again"),
    )


async def _set_ship_date(visit: Visit) -> Response:
    path, typed = f"/orders/{visit.path_id}", visit.form.text("shipDate")
    before: Order = (await visit.call("getOrder", path_id=visit.path_id)).value
    if typed == _shown(before.shipDate):
        return await visit.redirect(path)
    body, tag = {"shipDate": _moment(typed)}, visit.form.text("version")
    try:
        changed = await visit.call("updateOrder", path_id=visit.path_id, body=body, if_match=tag)
    except (InvalidBody, Conflict, PreconditionFailed) as error:
        return await _order(visit, error, typed=typed)
    (card,) = await _cards(visit, [changed.value])
    old = "" if before.shipDate is UNSET else before.shipDate.isoformat()
    undo = Undo(f"{path}/ship-date", {"shipDate": old, **card.seen})
    name = f"Order {before.id}"
    notice = change_notice(name, f"{name} has another ship date.", undo, visit.form.text("undo"))
    return await visit.redirect(path, notice)


async def _order(
    visit: Visit,
    error: PetstoreError | None = None,
    *,
    wanted: OrderStatus | None = None,
    typed: str | None = None,
) -> Response:
    """Return the page of the order as it is now, and what was wrong with a change of it."""
    order: Order = (await visit.call("getOrder", path_id=visit.path_id)).value
    (card,) = await _cards(visit, [order])
    problem = None
    if isinstance(error, InvalidBody):
        problem = problem_of(error, _LABELS)
    elif error is not None:
        problem = Problem("", _conflict(visit, card, wanted))
    return visit.page(
        "order.html",
        200 if error is None else error.status,
        card=card,
        ship_date=_shown(order.shipDate) if typed is None else typed,
        problem=problem,
    )


def _conflict(visit: Visit, card: Card, wanted: OrderStatus | None) -> str:
    """Return why an order did not change: what others, or the time, did since the person looked.

    ``wanted`` is the status that it did not get, ``None`` if it is about the ship date.
    """
    order, until = card.order, visit.form.text("until")
    if order.status == wanted:
        return f"Order {order.id} is {order.status} already."
    if order.status == "cancelled" and (ended := _ended(until, card.now)):
        return f"The time to approve order {order.id} ended {ended} ago. The order is cancelled."
    if order.status != visit.form.text("seen"):
        told = f"Somebody else {order.status} order {order.id} while this page was open."
    elif order.shipDate is UNSET:
        told = f"Somebody else removed the ship date of order {order.id}."
    else:
        shown = _shown(order.shipDate).replace("T", " ")
        told = f"Somebody else set the ship date of order {order.id} to {shown} UTC."
    if order.status in OPEN_STATUSES:
        return f"{told} Your change is not made. If it is still right, make it again."
    return told


def _ended(until: str, now: datetime) -> str:
    """Return how long ago a reservation ended, empty if it has not."""
    try:
        span = now - datetime.fromisoformat(until)
    except (ValueError, TypeError):  # not a moment, or one without a zone
        return ""
    return duration(span) if span >= timedelta(0) else ""


# A new order


async def _new(visit: Visit) -> Response:
    return await _form(visit)


async def _place(visit: Visit) -> Response:
    typed = _typed(visit)
    pet_id = typed["petId"]
    body: dict[str, Any] = {"petId": int(pet_id) if _is_number(pet_id) else pet_id}
    if typed["shipDate"]:
        body["shipDate"] = _moment(typed["shipDate"])
    try:
        placed = await visit.call("placeOrder", body=body, once=visit.form.text("once"))
    except (InvalidBody, UnknownPet, Conflict) as error:
        return await _form(visit, error)
    (card,) = await _cards(visit, [placed.value])
    path = f"/orders/{card.order.id}"
    notice = Notice(
        f"Order {card.order.id} is placed. {isolated(card.animal)} is reserved.",
        Undo(f"{path}/cancel", card.seen, "Cancel it"),
    )
    return await visit.redirect(page_after(visit, card.order), notice)


async def _form(visit: Visit, error: PetstoreError | None = None) -> Response:
    typed = _typed(visit)
    pet = await _pet(visit, typed["petId"])
    minutes = visit.services.reservation_minutes
    return visit.page(
        "new_order.html",
        200 if error is None else error.status,
        typed=typed,
        pet=pet,
        lasts=duration(timedelta(minutes=minutes)) if minutes else "",
        problem=None if error is None else _refused(error, typed["petId"], pet),
    )


async def _pet(visit: Visit, pet_id: str) -> Pet | None:
    if not _is_number(pet_id) or not visit.may("listPets"):
        return None
    try:
        found = await visit.call("listPets", query={"id": pet_id})
    except InvalidParameter:
        return None
    return found.value[0] if found.value else None


def _refused(error: PetstoreError, pet_id: str, pet: Pet | None) -> Problem:
    if isinstance(error, UnknownPet):
        return Problem("petId", f"There is no animal {pet_id}.", _LABELS["petId"])
    if isinstance(error, PetNotAvailable) and pet is not None:
        status = pet.status or "without a status"
        text = f"{isolated(pet.name)} is {status} now. Only an available animal can be reserved."
        return Problem("petId", text, _LABELS["petId"])
    return problem_of(error, _LABELS)


def _typed(visit: Visit) -> dict[str, str]:
    return {name: visit.form.text(name) for name in ("petId", "shipDate")}


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < _TOO_LONG


# Moments


def _moment(typed: str) -> str | None:
    """Return a typed moment as the interface takes it. Without a zone it is in UTC."""
    if _WITHOUT_ZONE.fullmatch(typed) is None:
        return typed or None
    return f"{typed}{':00' if typed.count(':') == 1 else ''}Z"


def _shown(moment: datetime | UnsetType) -> str:
    """Return a moment as the field of a form has it: in UTC, to the minute."""
    if moment is UNSET:
        return ""
    try:
        return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="minutes")
    except OverflowError:  # the first or the last day of the calendar
        return moment.isoformat()


PAGES = (
    Page("GET", "/orders", _board, needs="listOrders"),
    Page("POST", "/orders", _place, needs="placeOrder"),
    Page("GET", "/orders/new", _new, needs="placeOrder"),
    Page("GET", "/orders/{orderId}", _show, needs="getOrder"),
    Page(
        "POST", "/orders/{orderId}/approve", partial(_move, status="approved"), needs="updateOrder"
    ),
    Page(
        "POST", "/orders/{orderId}/deliver", partial(_move, status="delivered"), needs="updateOrder"
    ),
    Page(
        "POST", "/orders/{orderId}/cancel", partial(_move, status="cancelled"), needs="updateOrder"
    ),
    Page("POST", "/orders/{orderId}/ship-date", _set_ship_date, needs="updateOrder"),
)
