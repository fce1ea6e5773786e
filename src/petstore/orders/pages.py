"""The pages of orders: the list, one order, the list as a file; and orders on other pages."""

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import urlencode

from msgspec import UNSET, to_builtins

from petstore.clock import Milliseconds, utc
from petstore.console.downloads import amount_cell, delimiter_of, download_list
from petstore.console.forms import (
    Field,
    FieldSet,
    Problem,
    Texts,
    isolated,
    optional,
    page_address,
    typed_id,
)
from petstore.console.history import History, history_of, sellers_of
from petstore.console.numbers import money_in_words, plain_amount, typed_amount
from petstore.console.page import ConsolePage, Handler, Notice, PageRequest, Undo
from petstore.console.templates import ago_in_words
from petstore.domain.names import MAX_SEARCHED, name_key
from petstore.domain.time_zones import local_time, typed_moment
from petstore.errors import InvalidBody, InvalidParameter, NotFound, PreconditionFailed
from petstore.http.messages import Response
from petstore.interface.operation import Result
from petstore.orders.model import EXPORTED, OPEN_STATUSES, Order, OrderStatus, exported
from petstore.pets.model import Pet

_ON_A_PAGE = 50
_OPEN_PAGES_READ = 3  # of open orders: no shop has more than 300 of a kind
_MOST_NAMED = 20
_ALL = "all"
_TABS = {
    "placed": "To approve",
    "approved": "To hand over",
    "delivered": "Sold",
    "returned": "Returned",
    "cancelled": "Cancelled",
    _ALL: "All",
}
# A number alone, or as pages name an order or a pet. A telephone number is none.
_NUMBER = re.compile(r"(?P<kind>order|pet|) ?#?(?P<number>[1-9][0-9]{0,18})", re.IGNORECASE)
_FILTERS = FieldSet(
    Field(
        *("find", "Order, pet or buyer"),
        type="search",
        attributes={"placeholder": "number or name"},
    ),
    Field("from", "Sold from", type="date"),
    Field("to", "Sold to", type="date"),
)


class _Search(NamedTuple):
    """The ``query`` of ``listOrders`` or one order to find; ``pets`` may be those meant."""

    query: Mapping[str, Any] | None
    order: Order | None = None
    pets: Sequence[Pet] = ()


# The fields of orders in forms, and what other pages tell of them, too

_DETAILS = ("buyer", "amount", "shipDate", "note")  # which every order has


def order_form(request: PageRequest, order: Order | None = None) -> FieldSet:
    """Return what can be typed of an order: of a returned one its refund and reason, too."""
    zone = request.time_zone
    currency = order.currency if order and order.currency else request.services.settings.currency

    def shown_date(order: Order) -> str:
        if order.ship_date is UNSET:
            return ""
        return local_time(order.ship_date, zone).replace(tzinfo=None).isoformat(timespec="minutes")

    fields = [
        Field("buyer", "Buyer", parse=optional, attributes={"maxlength": 200}),
        _price("amount", "Price", currency),
        Field("shipDate", "Ship date", shown_date, partial(typed_moment, zone=zone), "moment"),
        Field(
            *("note", "Note"),
            show=lambda order: order.note or "",
            parse=optional,
            control="text",
            hint="What the staff should know.",
        ),
    ]
    if order is not None and order.status == "returned":
        fields.append(_price("refund", "Refund", currency))
        fields.append(Field("returnReason", "Reason", attributes={"maxlength": 200}))
    return FieldSet(*fields)


def ending_form(order: Order) -> FieldSet:
    return FieldSet(
        Field("cancelReason", "Reason", parse=optional),
        Field("returnReason", "Reason", parse=optional),
        _price("refund", "Refund", order.currency or ""),
    )


def _price(name: str, label: str, currency: str) -> Field:
    def show(order: Order) -> str:
        amount = getattr(order, name)
        return "" if amount is UNSET else plain_amount(amount, currency)

    return Field(
        *(name, f"{label} in {currency}", show),
        parse=partial(typed_amount, currency=currency, name=name),
        attributes={"inputmode": "decimal"},
    )


def sold_in_words(order: Order, pet: str) -> str:
    """Return a sale in words, such as ``Sold Hazel to Maria for $1,249.50 (order 157)``."""
    to = f" to {isolated(order.buyer)}" if order.buyer else ""
    price = ""
    if order.amount is not UNSET and order.currency is not UNSET:
        price = f" for {money_in_words(order.amount, order.currency)}"
    return f"Sold {isolated(pet)}{to}{price} (order {order.id})."


class Card(NamedTuple):
    """An order as pages show it, and its pet if it exists and the person may see it.

    If it is open, ``days_left`` are those to its ship date, fewer than none once it is late.
    """

    order: Order
    pet: Pet | None
    now: Milliseconds
    days_left: int | None

    @property
    def pet_name(self) -> str:
        return f"pet {self.order.pet_id}" if self.pet is None else self.pet.name

    @property
    def seen(self) -> Mapping[str, str]:
        """The hidden fields of a form that changes the order: which version the person saw."""
        return {"version": Result(self.order).version, "seen": self.order.status}


def _days_left(order: Order, request: PageRequest) -> int | None:
    if order.ship_date is UNSET or order.status not in OPEN_STATUSES:
        return None
    return (local_time(order.ship_date, request.time_zone).date() - request.today).days


async def open_orders(
    request: PageRequest, status: OrderStatus, cursor: str = ""
) -> tuple[list[Order], str]:
    """Return open orders, the latest first, and the cursor of others if they are too many."""
    orders = list[Order]()
    for _ in range(_OPEN_PAGES_READ):
        query = {"status": status, "limit": 100, "cursor": cursor or None}
        found = await request.execute("listOrders", query=query)
        orders += found.value
        cursor = found.next
        if not cursor:
            break
    return sorted(orders, key=lambda order: min(0, _days_left(order, request) or 0)), cursor


async def cards_of(request: PageRequest, orders: Sequence[Order]) -> list[Card]:
    pets, now = await request.pets_of({each.pet_id for each in orders}), request.services.clock()
    return [Card(each, pets.get(each.pet_id), now, _days_left(each, request)) for each in orders]


async def latest_order(request: PageRequest, pet: Pet) -> Order | None:
    latest = {"petId": pet.id, "sort": "-id", "limit": 1}
    orders: Sequence[Order] = (await request.execute("listOrders", query=latest)).value
    return orders[0] if orders else None


# The list


async def _list(request: PageRequest) -> Response:
    form, tab = _FILTERS.new(request.form, request.error), _tab(request)
    search, orders, cursor = _Search(None), list[Order](), ""
    if request.error is None:
        search = await _search(request, form.typed)
        orders, cursor = await _orders(request, search, tab)
    kept = {name: text for name, text in form.typed.items() if text}
    tabs = [
        (name, label, None if kept or name == _ALL else await _count(request, name))
        for name, label in _TABS.items()
    ]
    cards = await cards_of(request, orders)
    pets = [*search.pets, *(card.pet for card in cards if card.pet is not None)]
    here = {"status": tab, **kept}
    page = request.page(
        "orders.html",
        form=form,
        search=search,
        cards=cards,
        cursor=cursor,
        tab=tab,
        tabs=tabs,
        kept=kept,
        here=here,
        back=f"/orders?{urlencode({**here, 'cursor': request.form.text('cursor')})}",
        names=await request.category_names({pet.category_id for pet in pets}),
    )
    if request.error:
        return page
    return await request.list_response("/orders", here, Result(orders, cursor), page)


def _tab(request: PageRequest) -> str:
    """Return the tab of the address: without one, what is found of all orders, or what to do."""
    tab = request.form.text("status")
    if tab in _TABS:
        return tab
    return _ALL if any(_FILTERS.typed(request.form).values()) else "placed"


async def _count(request: PageRequest, status: str) -> int | None:
    query = {"status": status, "limit": 1, "count": True}
    return (await request.execute("listOrders", query=query)).total


async def _search(request: PageRequest, wanted: Texts) -> _Search:
    typed, range_ = wanted["find"], _range(request, wanted)
    if not typed or len(typed) > MAX_SEARCHED:
        return _Search(None if typed else range_)
    named = _NUMBER.fullmatch(typed)
    # Digits may be of a telephone number.
    is_of_buyer = False
    if named is None or typed.isdecimal():
        query = {"buyer": typed, "limit": 1}
        is_of_buyer = bool((await request.execute("listOrders", query=query)).value)
    if named and not is_of_buyer:
        kind, number = named["kind"].lower(), typed_id(named["number"])
        pet = None if kind == "order" else await request.find_pet(number)
        if kind == "pet":
            return _Search({**range_, "petId": number}, pets=[pet] if pet else [])
        try:
            order = (await request.execute("getOrder", path_id=number or 0)).value
            return _Search(None, order, [pet] if pet else [])
        except NotFound:
            if pet is not None:
                return _Search({**range_, "petId": pet.id}, pets=[pet])
    pets = await _pets(request, typed)
    if is_of_buyer:
        return _Search({**range_, "buyer": typed}, pets=pets)
    return _Search({**range_, "petId": pets[0].id} if len(pets) == 1 else None, pets=pets)


def _range(request: PageRequest, wanted: Texts) -> dict[str, Any]:
    query: dict[str, Any] = {}
    names = {"from": ("deliveredSince", 0), "to": ("deliveredBefore", 1)}
    for field, (name, days) in names.items():
        if wanted[field]:
            try:
                day = date.fromisoformat(wanted[field]) + timedelta(days=days)
                query[name] = datetime(day.year, day.month, day.day, tzinfo=request.time_zone)
            except (ValueError, OverflowError):
                raise InvalidParameter(f"{field}: expected a date such as 2026-12-24") from None
    return query


async def _pets(request: PageRequest, typed: str) -> Sequence[Pet]:
    query = {"name": typed, "limit": _MOST_NAMED}
    found: Sequence[Pet] = (await request.execute("listPets", query=query)).value
    same = [pet for pet in found if name_key(pet.name) == name_key(typed)]
    return same or found


async def _orders(request: PageRequest, search: _Search, tab: str) -> tuple[list[Order], str]:
    if search.order is not None:
        return [search.order], ""
    if search.query is None:
        return [], ""
    cursor = request.form.text("cursor")
    if not search.query and tab in OPEN_STATUSES:
        return await open_orders(request, tab, cursor)
    query = {"limit": _ON_A_PAGE, "cursor": cursor or None, **_list_query(search, tab)}
    found = await request.execute("listOrders", query=query)
    return found.value, found.next


def _list_query(search: _Search, tab: str) -> dict[str, Any]:
    query = {**(search.query or {}), "status": None if tab == _ALL else tab}
    if not search.query and tab == "delivered":
        query["deliveredSince"] = utc(0)
    elif not query.keys() & {"buyer", "deliveredSince", "deliveredBefore"}:
        query["sort"] = "-id"
    return query


# One order


async def _show(request: PageRequest, wanted: OrderStatus | None = None) -> Response:
    order: Order = (await request.execute("getOrder")).value
    (card,) = await cards_of(request, [order])
    history = await history_of(request, f"order/{order.id}")
    fields = order_form(request, order)
    form = fields.shown(fields.texts(order), Result(order).version, request.form, request.error)
    told = ""
    if request.error is not None and not isinstance(request.error, InvalidBody):
        told = _conflict(request, card, history, wanted)
        if wanted is not None or not isinstance(request.error, PreconditionFailed):
            form = form._replace(problem=Problem("", told), is_conflict=False)
    return request.page(
        "order.html",
        card=card,
        form=form,
        told=told,
        history=history,
        refund={
            name: typed for name in ("refund", "returnReason") if (typed := request.form.line(name))
        },
    )


async def _move(request: PageRequest, status: OrderStatus) -> Response:
    order: Order = (await request.execute("getOrder")).value
    details, ending = order_form(request, order).only(*_DETAILS), ending_form(order)
    body = details.patch(request.form) | {"status": status}
    changed = await request.execute("updateOrder", body | ending.body(ending.typed(request.form)))
    (card,) = await cards_of(request, [changed.value])
    path = page_address(request.form.text("back")) or f"/orders/{request.path_id}"
    return await request.redirect(path, _told(request, card))


def _told(request: PageRequest, card: Card) -> Notice:
    order, pet = card.order, isolated(card.pet_name)
    is_free = card.pet is not None and card.pet.status == "available"
    freed = f" {pet} is available again." if is_free else ""
    if order.status == "approved":
        undo = Undo(f"/orders/{order.id}/cancel", card.seen, "Cancel it")
        return Notice(f"Approved order {order.id}: {pet} stays reserved.", undo)
    if order.status == "delivered":
        return Notice(sold_in_words(order, card.pet_name))
    if order.status == "returned":
        back = ""
        if order.refund and order.currency:
            back = f", and {money_in_words(order.refund, order.currency)} refunded"
        return Notice(f"Order {order.id} is returned{back}.{freed}")
    fields = {**order_form(request).texts(order), "once": Result(order).version}
    if order.currency != request.services.settings.currency:
        fields["amount"] = ""
    undo = Undo(f"/pets/{order.pet_id}/reserve", fields, "Reserve again")
    return Notice(f"Order {order.id} is cancelled.{freed}", undo)


async def _change(request: PageRequest) -> Response:
    before: Order = (await request.execute("getOrder")).value
    fields = order_form(request, before)
    body = fields.patch(request.form)
    if not body:
        return await request.redirect(request.own_path)
    changed = await request.execute("updateOrder", body)
    back, now = fields.texts(before), fields.texts(changed.value)
    if back["shipDate"] != now["shipDate"]:
        back["shipDate"] = before.ship_date.isoformat() if before.ship_date else ""
    return await request.tell_change(f"Order {before.id}", back, now, changed.version)


def _conflict(
    request: PageRequest, card: Card, history: History, wanted: OrderStatus | None
) -> str:
    """Return why an order did not change: what others, or the time, did since the person looked."""
    order = card.order
    if order.status == wanted:
        return f"Order {order.id} is {order.status} already."
    line, done = history.change_of("status"), f"{order.status} order {order.id}"
    if order.status == request.form.text("seen"):
        line, done = next(iter(history.lines), None), f"changed order {order.id}"
    told = f"Another person {done} while this page was open."
    if line is not None:
        ago = ago_in_words(history.now - line.at)
        told = f"{isolated(line.who)} {done} {ago}, while this page was open."
    if order.status in OPEN_STATUSES:
        return f"{told} Your change is not made. If it is still right, make it again."
    return told


# The file of orders


async def _download(request: PageRequest) -> Response:
    search = await _search(request, _FILTERS.typed(request.form))
    amount_text = partial(amount_cell, delimiter=delimiter_of(request.form))
    found = 0 if search.order is None else search.order.pet_id
    query = _list_query(
        search if search.query is not None else _Search({"petId": found}), _tab(request)
    )

    async def rows_of(orders: Sequence[Order]) -> list[dict[str, Any]]:
        pets = await request.pets_of({order.pet_id for order in orders})
        names = await request.category_names({pet.category_id for pet in pets.values()})
        sellers = await sellers_of(request, [order.id for order in orders if order.delivered_at])
        rows = []
        for order in orders:
            pet = pets.get(order.pet_id)
            row = {"soldBy": sellers.get(order.id, "")}
            if pet is not None:
                row |= {"pet": pet.name, "category": names.get(pet.category_id, "")}
            rows.append(exported(to_builtins(order), request.time_zone, amount_text, **row))
        return rows

    return await download_list(request, "orders", EXPORTED, "listOrders", query, rows_of)


def _to(status: OrderStatus) -> tuple[Handler, str, Handler]:
    return partial(_move, status=status), "updateOrder", partial(_show, wanted=status)


PAGES = (
    ConsolePage("GET", "/orders", _list, "listOrders", _list),
    ConsolePage("GET", "/orders/{orderId}", _show, "getOrder"),
    ConsolePage("POST", "/orders/{orderId}", _change, "updateOrder", _show),
    ConsolePage("POST", "/orders/{orderId}/approve", *_to("approved")),
    ConsolePage("POST", "/orders/{orderId}/deliver", *_to("delivered")),
    ConsolePage("POST", "/orders/{orderId}/return", *_to("returned")),
    ConsolePage("POST", "/orders/{orderId}/cancel", *_to("cancelled")),
    ConsolePage("GET", "/orders/export.csv", _download, "listOrders", _list, has_file=True),
)
