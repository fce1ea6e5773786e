"""The pages of orders: the board, one order, and a new one."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

from msgspec import UNSET, to_builtins

from petstore.clock import utc
from petstore.console.downloads import amount_cell, delimiter_of, download_list
from petstore.console.forms import Field, FieldSet, Problem, Texts, typed_id
from petstore.console.history import History, history_of
from petstore.console.numbers import shown_count
from petstore.console.page import ConsolePage, Handler, Notice, PageRequest, Refused, Undo
from petstore.console.templates import ago_in_words, duration, isolated
from petstore.domain.names import MAX_SEARCHED, name_key
from petstore.errors import (
    InvalidBody,
    NotFound,
    PetNotAvailable,
    PetstoreError,
    PreconditionFailed,
    UnknownPet,
)
from petstore.http.messages import Response
from petstore.interface.operation import Result
from petstore.orders.form import STATUS_FILTER, exact, new_order_form, order_form, shown_ship_date
from petstore.orders.model import (
    OPEN_STATUSES,
    Order,
    OrderStatus,
    can_be_undone,
    is_over_the_counter,
)
from petstore.pets.model import Pet

_ON_A_PAGE = 50
_MOST_NAMED = 20
_IN_A_LANE: dict[OrderStatus, int] = {
    "placed": 20,
    "approved": 20,
    "delivered": 10,
    "cancelled": 10,
}
_BOARD = {"board": "/orders", "/today": "/today"} | {
    status: f"/orders?status={status}" for status in _IN_A_LANE
}
# A number alone, or as pages name an order or a pet.
_NUMBER = re.compile(r"(?P<kind>order|pet|) ?#?(?P<number>[0-9]+)", re.IGNORECASE)
_NOTHING_FOUND = (
    "Nothing is found. Type the number of an order, the beginning of the name of its buyer, or a"
    " word of the name of its pet."
)
_TOO_LATE_TO_UNDO = (
    "A sale can be undone for one minute. To take the pet back later, use Take back on its page."
)


class _Card(NamedTuple):
    """An order as pages show it, and its pet if it exists and the person may see it."""

    order: Order
    pet: Pet | None
    now: datetime

    @property
    def pet_name(self) -> str:
        return f"pet {self.order.pet_id}" if self.pet is None else self.pet.name

    @property
    def is_available(self) -> bool:
        return self.pet is not None and self.pet.status == "available"

    @property
    def seen(self) -> Mapping[str, str]:
        """The hidden fields of a form that changes the order: which version the person saw."""
        until = self.order.reserved_until
        return {
            "version": Result(self.order).version,
            "seen": self.order.status,
            "until": exact(until),
        }

    @property
    def can_be_undone(self) -> bool:
        return can_be_undone(self.order, self.now)


class _Lane(NamedTuple):
    """Orders of one status, or those found if it is empty. ``cursor`` leads on.

    ``total`` is how many there are, in words; it is empty where that is not known.
    """

    status: str
    cards: Sequence[_Card]
    cursor: str
    total: str


# The board


class _OrderSearch(NamedTuple):
    """What a person may mean by a number or a name: one order, or those that ``wanted`` filters.

    ``others`` are pets that they may mean as well. ``told`` says what is not found.
    """

    wanted: Texts
    order: Order | None = None
    others: Sequence[Pet] = ()
    told: str = ""


async def _board(visit: PageRequest, error: PetstoreError | None = None) -> Response:
    form = _FILTERS.new(visit.form, error)
    search, lanes, meant = _OrderSearch(form.typed), list[_Lane](), list[Pet]()
    if error is None:
        search = await _search(visit, form.typed)
        meant += await _pets(visit, search.wanted["petId"])
        lanes += await _lanes(visit, search, meant)
    pets = [card.pet for lane in lanes for card in lane.cards if card.pet is not None]
    return visit.page(
        "orders.html",
        error=error,
        lanes=lanes,
        form=form,
        search=search,
        meant=meant,
        names=await visit.category_names({pet.category_id for pet in pets}),
    )


async def _search(visit: PageRequest, wanted: Texts) -> _OrderSearch:
    typed, others = wanted["find"], {**wanted, "find": ""}
    if not typed:
        return _OrderSearch(others)
    if named := _NUMBER.fullmatch(typed):
        return await _search_number(visit, named["kind"].lower(), named["number"], others)
    if len(typed) > MAX_SEARCHED:
        return _OrderSearch(_NO_FILTERS, told=_NOTHING_FOUND)
    meant = await _pets(visit, typed)
    query = {"buyer": typed, "status": wanted["status"] or None, "limit": 1}
    found = await visit.execute("listOrders", query=query)
    if found.value or found.next:  # with a status, a page looks at some orders only
        return _OrderSearch({**others, "buyer": typed}, others=meant)
    if meant:
        return _OrderSearch({**others, "petId": typed})
    return _OrderSearch(_NO_FILTERS, told=_NOTHING_FOUND)


async def _search_number(visit: PageRequest, kind: str, number: str, others: Texts) -> _OrderSearch:
    of_pet = {**others, "petId": number}
    if kind == "pet":
        return _OrderSearch(of_pet)
    pet = None if kind == "order" else await visit.find_pet(typed_id(number))
    try:
        order = (await visit.execute("getOrder", path_id=typed_id(number) or 0)).value
    except NotFound:
        told = f"There is no order {number}."
        return _OrderSearch(_NO_FILTERS if pet is None else of_pet, told=told)
    return _OrderSearch(_NO_FILTERS, order, () if pet is None else [pet])


async def _lanes(visit: PageRequest, search: _OrderSearch, meant: Sequence[Pet]) -> Sequence[_Lane]:
    wanted = search.wanted
    if search.order is not None:
        return [_Lane("", await _cards(visit, [search.order]), "", "")]
    is_missing = search.told and not wanted["petId"]
    if is_missing or (wanted["petId"] and len(meant) != 1):
        return ()
    if not any(wanted.values()):
        return [await _lane(visit, status, limit) for status, limit in _IN_A_LANE.items()]
    filters: dict[str, Any] = {
        "status": wanted["status"] or None,
        "petId": meant[0].id if meant else None,
        "buyer": wanted["buyer"] or None,
        "cursor": visit.form.text("cursor") or None,
    }
    return [await _lane(visit, wanted["status"], _ON_A_PAGE, filters)]


async def _lane(
    visit: PageRequest, status: str, limit: int, filters: Mapping[str, Any] | None = None
) -> _Lane:
    """Return a lane: work that waits with the oldest first, everything else with the newest."""
    query: dict[str, Any] = {"status": status or None, "limit": limit, **(filters or {})}
    if query.get("buyer") is None:
        query["sort"] = "id" if status in OPEN_STATUSES else "-id"
    if not query.get("buyer"):  # the cost of a search grows with what it finds
        query["count"] = True
    found = await visit.execute("listOrders", query=query)
    total = len(found.value) if found.total is None else found.total
    is_counted = found.total is not None or not (found.next or query.get("cursor"))
    shown = shown_count(total, "order") if is_counted else ""
    return _Lane(status, await _cards(visit, found.value), found.next, shown)


async def _pets(visit: PageRequest, typed: str, status: str | None = None) -> Sequence[Pet]:
    """Return the pets that a typed number may mean, or a whole name, or words of names."""
    if (pet_id := typed_id(typed)) is not None:
        pet = await visit.find_pet(pet_id)
        # The orders of a pet that is gone are still there.
        return [Pet(pet_id, f"pet {pet_id}", 0) if pet is None else pet]
    if not 0 < len(typed) <= MAX_SEARCHED:
        return ()
    query = {"name": typed, "status": status, "limit": _MOST_NAMED}
    found: Sequence[Pet] = (await visit.execute("listPets", query=query)).value
    same = [pet for pet in found if name_key(pet.name) == name_key(typed)]
    return same or found


async def _cards(visit: PageRequest, orders: Sequence[Order]) -> list[_Card]:
    now = utc(visit.services.clock())
    pets = await visit.pets_of({order.pet_id for order in orders})
    return [_Card(order, pets.get(order.pet_id), now) for order in orders]


# One order


async def _show(
    visit: PageRequest, error: PetstoreError | None = None, wanted: OrderStatus | None = None
) -> Response:
    """Return the page of the order, after an error with the status that it did not get."""
    order: Order = (await visit.execute("getOrder")).value
    (card,) = await _cards(visit, [order])
    history = await history_of(visit, f"order/{order.id}")
    fields = order_form(order, visit.services.currency)
    form = fields.shown(fields.texts(order), Result(order).version, visit.form, error)
    told = ""
    if error is not None and not isinstance(error, InvalidBody):
        told = _conflict(visit, card, history, wanted)
        if wanted is not None or not isinstance(error, PreconditionFailed):
            form = form._replace(problem=Problem("", told), is_conflict=False)
    return visit.page("order.html", error=error, card=card, form=form, told=told, history=history)


async def _move(visit: PageRequest, status: OrderStatus) -> Response:
    reason = visit.form.line("cancelReason")
    body = {"status": status, "cancelReason": reason} if reason else {"status": status}
    changed = await visit.execute("updateOrder", body)
    (card,) = await _cards(visit, [changed.value])
    path = _BOARD.get(visit.form.text("back")) or _page_after(visit, card.order)
    return await visit.redirect(path, _told(card, changed.version, visit.form.text("seen")))


def _told(card: _Card, version: str, seen: str) -> Notice:
    """Return what to say of an order that has just moved; ``seen`` is its status before."""
    order, pet = card.order, isolated(card.pet_name)
    if order.status == "approved":
        return Notice(f"Order {order.id} for {pet} is approved. It has no time limit now.")
    if order.status == "delivered":
        return Notice(f"Order {order.id} is delivered. {pet} is sold.")
    if seen == "delivered":
        text = f"The sale of {pet} is undone: order {order.id} is cancelled."
        return Notice(f"{text} {pet} is available again." if card.is_available else text)
    texts = new_order_form("").texts(order)
    fields = {**texts, "shipDate": exact(order.ship_date), "once": version}
    return Notice(
        f"Order {order.id} is cancelled. {pet} is available again.",
        Undo("/orders", fields, "Reserve again"),
    )


async def _change(visit: PageRequest) -> Response:
    path = f"/orders/{visit.path_id}"
    before: Order = (await visit.execute("getOrder")).value
    fields = order_form(before, visit.services.currency)
    body = fields.patch(visit.form)
    if not body:
        return await visit.redirect(path)
    changed = await visit.execute("updateOrder", body)
    back, now = fields.texts(before), fields.texts(changed.value)
    if back.get("shipDate") != now.get("shipDate"):
        back["shipDate"] = exact(before.ship_date)
    return await visit.tell_change(path, f"Order {before.id}", back, now, changed.version)


def _conflict(visit: PageRequest, card: _Card, history: History, wanted: OrderStatus | None) -> str:
    """Return why an order did not change: what others, or the time, did since the person looked."""
    order, until = card.order, visit.form.text("until")
    if order.status == "delivered" and wanted == "cancelled" and is_over_the_counter(order):
        return _TOO_LATE_TO_UNDO
    if order.status == wanted:
        return f"Order {order.id} is {order.status} already."
    if order.status == "cancelled" and (ended := _ended(until, card.now)):
        return f"The time to approve order {order.id} ended {ended} ago. The order is cancelled."
    if order.status != visit.form.text("seen"):
        line, done = history.change_of("status"), f"{order.status} order {order.id}"
    else:
        line, done = history.change_of("shipDate"), f"removed the ship date of order {order.id}"
        if shown := shown_ship_date(order):
            done = f"set the ship date of order {order.id} to {shown.replace('T', ' ')} UTC"
    told = f"Somebody else {done} while this page was open."
    if line is not None:
        ago = ago_in_words(history.now - line.at)
        told = f"{isolated(line.who)} {done} {ago}, while this page was open."
    if order.status in OPEN_STATUSES:
        return f"{told} Your change is not made. If it is still right, make it again."
    return told


def _ended(until: str, now: datetime) -> str:
    try:
        span = now - datetime.fromisoformat(until)
    except (ValueError, TypeError):  # not a moment, or one without a zone
        return ""
    return duration(span) if span >= timedelta(0) else ""


# A new order


async def _new(visit: PageRequest, error: PetstoreError | None = None) -> Response:
    fields = new_order_form(visit.services.currency)
    form = fields.new(visit.form, error)
    typed = form.typed["petId"]
    pet_id = typed_id(typed)
    pet = await visit.find_pet(pet_id)
    meant = await _pets(visit, typed, "available") if pet_id is None else ()
    if error is not None:
        form = form._replace(problem=_refused(error, typed, pet) or fields.problem(error))
    minutes = visit.services.reservation_minutes
    return visit.page(
        "new_order.html",
        error=error,
        form=form,
        pet=pet,
        meant=meant,
        lasts=duration(timedelta(minutes=minutes)) if minutes else "",
    )


def _page_after(visit: PageRequest, order: Order) -> str:
    is_of_pet = visit.form.text("back") == "pet"
    return f"/pets/{order.pet_id}" if is_of_pet else f"/orders/{order.id}"


async def _place(visit: PageRequest) -> Response:
    fields = new_order_form(visit.services.currency)
    body = fields.body(fields.typed(visit.form))
    body["petId"] = await _ordered(visit, body["petId"])
    placed = await visit.execute("placeOrder", body)
    (card,) = await _cards(visit, [placed.value])
    path = f"/orders/{card.order.id}"
    notice = Notice(
        f"Order {card.order.id} is placed. {isolated(card.pet_name)} is reserved.",
        Undo(f"{path}/cancel", card.seen, "Cancel it"),
    )
    return await visit.redirect(_page_after(visit, card.order), notice)


async def _ordered(visit: PageRequest, typed: str) -> int | InvalidBody:
    """Return the id of the pet that a person wants to order, or why it is not clear."""
    pet_id = typed_id(visit.form.text("chosen")) or typed_id(typed)
    if pet_id is not None:
        return pet_id
    meant = await _pets(visit, typed, "available")
    if len(meant) == 1:
        return meant[0].id
    if meant:
        msg = "petId: several available pets are named so; choose one of them"
    elif typed:
        msg = "petId: no available pet has this number or a name that begins so"
    else:
        msg = "petId: expected the number of a pet"
    return InvalidBody(msg)


def _refused(error: PetstoreError, pet_id: str, pet: Pet | None) -> Problem | None:
    if isinstance(error, UnknownPet):
        text = f"There is no pet {pet_id}."
    elif isinstance(error, PetNotAvailable) and pet is not None:
        status = pet.status or "without a status"
        text = f"{isolated(pet.name)} is {status} now. Only an available pet can be reserved."
    else:
        return None
    return Problem("petId", text, "Pet")


# The forms

_FILTERS = FieldSet(
    Field(
        *("find", "Order, pet or buyer"),
        type="search",
        attributes={"placeholder": "number or name"},
    ),
    STATUS_FILTER,
    Field("petId", "Pet", type="search", attributes={"placeholder": "name or number"}),
    Field("buyer", "Buyer", type="search", attributes={"placeholder": "begins with"}),
)
_NO_FILTERS = dict.fromkeys(_FILTERS.labels, "")


# The file of orders

_EXPORTED = (
    *("id", "status", "petId", "petName", "buyer", "amount", "currency", "note"),
    *("placedAt", "shipDate", "approvedAt", "deliveredAt", "cancelledAt", "cancelReason"),
)


async def _download(visit: PageRequest) -> Response:
    wanted, delimiter = _FILTERS.typed(visit.form), delimiter_of(visit.form)
    query = {"status": wanted["status"] or None, "buyer": wanted["buyer"] or None}
    if query["buyer"] is None:
        query["sort"] = "-id"

    async def rows_of(orders: Sequence[Order]) -> list[dict[str, Any]]:
        pets = await visit.pets_of({order.pet_id for order in orders})
        rows = [to_builtins(order) for order in orders]
        for order, row in zip(orders, rows, strict=True):
            if order.amount is not UNSET and order.currency is not UNSET:
                row["amount"] = amount_cell(order.amount, order.currency, delimiter)
            pet = pets.get(order.pet_id)
            row["petName"] = "" if pet is None else pet.name
        return rows

    return await download_list(visit, "orders", _EXPORTED, "listOrders", query, rows_of)


def _to(status: OrderStatus) -> tuple[Handler, str, Refused]:
    return partial(_move, status=status), "updateOrder", partial(_show, wanted=status)


PAGES = (
    ConsolePage("GET", "/orders", _board, "listOrders", _board),
    ConsolePage("POST", "/orders", _place, "placeOrder", _new),
    ConsolePage("GET", "/orders/new", _new, "placeOrder"),
    ConsolePage("GET", "/orders/{orderId}", _show, "getOrder"),
    ConsolePage("POST", "/orders/{orderId}", _change, "updateOrder", _show),
    ConsolePage("POST", "/orders/{orderId}/approve", *_to("approved")),
    ConsolePage("POST", "/orders/{orderId}/deliver", *_to("delivered")),
    ConsolePage("POST", "/orders/{orderId}/cancel", *_to("cancelled")),
    ConsolePage("GET", "/orders/export.csv", _download, "listOrders", _board, has_file=True),
)
