"""The pages of pets: find, add, change, sell, reserve, delete, count."""

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode

from msgspec import UNSET, to_builtins
from msgspec import convert as converted

from petstore.categories.pages import category_form
from petstore.clock import Milliseconds, utc
from petstore.console.downloads import download_list
from petstore.console.forms import (
    EMPTY,
    Field,
    FieldSet,
    Form,
    Texts,
    choice,
    isolated,
    optional,
    typed_id,
    undo_fields,
)
from petstore.console.history import History, deleted_page, history_of, newest_events
from petstore.console.page import ConsolePage, Notice, PageRequest, Undo, change_notice
from petstore.domain.cursors import MAX_COUNTED
from petstore.domain.decoding import number_or_text
from petstore.domain.time_zones import local_time
from petstore.errors import InvalidBody, NotFound, PetReserved, PreconditionFailed
from petstore.http.messages import Response
from petstore.interface.operation import Result
from petstore.orders.model import OPEN_STATUSES, Order
from petstore.orders.pages import cards_of, latest_order, order_form, sold_in_words
from petstore.pets.model import EXPORTED, STATUSES, NewPet, Pet, statuses_after

_ON_A_PAGE = 50
MAX_SELECTED = 500
NOT_COUNTED = "This does not count as a sale."
_NO_SALE = "“sold” here is not counted in Sales. Sell the pet instead."
_VERSION = 8
_ADDED_LAST = 10
_STATUSES = tuple((status, status) for status in STATUSES)
_NO_STATUS = "none"
# A field that only the form of a sale has.
_SELLS = "amount"
_NUMBER = re.compile(r"(?:pet ?)?#? ?([0-9]+)", re.IGNORECASE)
_STATUS_CHOICES = (("", "any"), *_STATUSES, (_NO_STATUS, "no status"))


def _category(text: str) -> int | str:
    if not text:
        raise InvalidBody("categoryId: choose a category")
    return number_or_text(text)


_CATEGORY = Field(
    *("categoryId", "Category"), show=lambda pet: f"{pet.category_id}", parse=_category
)
_MAY_BE_EMPTY = _CATEGORY._replace(parse=lambda text: number_or_text(text) if text else None)
_FILTERS = FieldSet(
    Field("name", "Name or number", parse=optional, type="search"),
    choice("status", "Status", *_STATUS_CHOICES, parse=optional),
    _MAY_BE_EMPTY,
)
KEEP = "Keep"
SELECTION_FORM = FieldSet(
    choice("status", "Status", ("", KEEP), *_STATUS_CHOICES[1:], parse=optional), _MAY_BE_EMPTY
)
"""What several selected pets get at once; an empty field leaves them as they are."""


def _form(
    statuses: Sequence[tuple[str, str]] = (*_STATUSES, ("", "none")), status_hint: str = ""
) -> FieldSet:
    special = {
        "name": Field("name", "Name", attributes={"aria-required": "true"}),
        "categoryId": _CATEGORY,
        "status": choice("status", "Status", *statuses, parse=optional, hint=status_hint),
    }
    # Any other field is a line of text that may be empty.
    return FieldSet(
        *(
            special.get(name)
            or Field(name, re.sub("[A-Z]", r" \g<0>", name).capitalize(), parse=optional)
            for name in NewPet.__struct_encode_fields__
        )
    )


FORM = _form()
TABLE = FORM.only("name", "status", "categoryId")


async def _list(request: PageRequest) -> Response:
    wanted = _FILTERS.typed(request.form)
    form = _FILTERS.new(request.form, request.error)
    suggested, number = None, _NUMBER.fullmatch(wanted["name"])
    found = Result[list[Pet]]([])
    if request.error is None:
        found = await request.execute("listPets", query=list_query(request.form))
        suggested = await request.find_pet(typed_id(number[1])) if number else None
    count = found.total
    if count is None and not (found.next or request.form.text("cursor")):
        count = len(found.value)  # a search with more than a page is not counted
    if suggested and not found.next and found.value in ([], [suggested]):
        return await request.redirect(f"/pets/{suggested.id}")
    filters = {name: text for name, text in wanted.items() if text}
    page = request.page(
        "pets.html",
        pets=found.value,
        cursor=found.next,
        is_short=bool(found.next) and len(found.value) < _ON_A_PAGE,
        count=count,
        most_counted=MAX_COUNTED,
        suggested=suggested,
        names=await request.category_names({pet.category_id for pet in found.value}),
        form=await category_form(request, form, "any"),
        columns=TABLE.fields,
        filters=filters,
        selection=await category_form(request, SELECTION_FORM.new(EMPTY), KEEP),
        max_selected=MAX_SELECTED,
        box_of=box_of,
    )
    return page if request.error else await request.list_response("/pets", filters, found, page)


def list_query(form: Form) -> dict[str, Any]:
    wanted = _FILTERS.typed(form)
    query = _FILTERS.body(wanted)
    if query.get("status") == _NO_STATUS:
        del query["status"]
        query["hasStatus"] = False
    if not wanted["name"]:
        query |= {"sort": "-id", "count": True}
    return query | {"limit": _ON_A_PAGE, "cursor": form.text("cursor") or None}


async def _new(request: PageRequest) -> Response:
    form = FORM.new(request.form, request.error, {"status": "available"})
    return request.page(
        "new_pet.html", form=await category_form(request, form), added=await _added(request)
    )


async def _added(request: PageRequest) -> list[tuple[Pet, str, Milliseconds, Undo | None]]:
    """Return pets, with their categories, when they were added, and how to undo that."""
    wanted = {"actor": request.caller.actor, "type": ["pet.created"]}
    events, _ = await newest_events(request, wanted, _ADDED_LAST)
    created = {event.data["id"]: event for event in events}
    pets = await request.pets_of(created)
    names = await request.category_names({pet.category_id for pet in pets.values()})
    return [
        (
            pet,
            names.get(pet.category_id, str(pet.category_id)),
            event.at,
            _undo_of(pet) if converted(event.data, Pet) == pet else None,
        )
        for pet_id, event in created.items()
        if (pet := pets.get(pet_id))
    ]


def _undo_of(pet: Pet) -> Undo:
    return Undo(f"/pets/{pet.id}/delete", {"version": Result(pet).version, "back": "new"})


async def _create(request: PageRequest) -> Response:
    created = await request.execute("createPet", FORM.body(FORM.typed(request.form)))
    pet: Pet = created.value
    notice = Notice(f"Added {isolated(pet.name)} (#{pet.id}).", _undo_of(pet))
    if request.form.text("again"):
        return await request.redirect(f"/pets/{pet.id}", notice)
    return await request.redirect(_next_to(pet), notice)


def _next_to(pet: Pet) -> str:
    return f"/pets/new?{urlencode({'categoryId': pet.category_id, 'status': pet.status or ''})}"


async def _show(request: PageRequest) -> Response:
    history = await history_of(request, f"pet/{request.path_id}")
    try:
        found = await _get(request)
    except NotFound as gone:
        event, undo = history.last, None
        if event is not None and event.type == "pet.deleted" and request.may("createPet"):
            undo = _again(converted(event.data, Pet))
        return deleted_page(request, history, gone, FORM, undo)
    pet: Pet = found.value
    now = FORM.texts(pet)
    latest = await latest_order(request, pet) if pet.status in ("pending", "sold") else None
    order = latest if latest and latest.status in OPEN_STATUSES else None
    sale = latest if latest and pet.status == "sold" and _is_sale(latest, history) else None
    error = request.error
    of_sale, of_change = (error, None) if _SELLS in request.form.fields else (None, error)
    form = FORM.shown(now, found.version, request.form, of_change)
    form = form._replace(fields=_offered(pet, order, form.typed["status"]).fields)
    sold = order_form(request).new(request.form if of_sale else EMPTY, of_sale)
    return request.page(
        "pet.html",
        found=found,
        sale_form=sold,
        problem=form.problem or sold.problem,
        sale=sale,
        version=version_of(pet),
        card=(await cards_of(request, [sale]))[0] if sale else None,
        texts=now,
        names=await request.category_names([pet.category_id]),
        form=await category_form(request, form),
        order=order,
        history=history,
    )


def _is_sale(order: Order, history: History) -> bool:
    """Return whether an order sold the pet, which was not available again and then sold by hand."""
    if order.status != "delivered" or not order.delivered_at:
        return False
    moved = history.change_of("status")
    return moved is None or utc(moved.at) <= order.delivered_at


def _offered(pet: Pet, order: Order | None, typed: str) -> FieldSet:
    following = () if order else statuses_after(pet.status)
    statuses = dict.fromkeys([pet.status or "", *(status or "" for status in following), typed])
    choices = [(status, status or "none") for status in statuses]
    hint = "The order decides the status." if order else ""
    return _form(choices, hint or (_NO_SALE if "sold" in following else ""))


async def _update(request: PageRequest) -> Response:
    edit = FORM.edit(request.form)
    pet: Pet = (await request.execute("updatePet", FORM.values(edit.changes))).value
    path, now = f"/pets/{pet.id}", FORM.texts(pet)
    before = now | {name: edit.opened.get(name, "") for name in edit.changes}
    if before == now:
        return await request.redirect(path, Notice("Nothing was changed."))
    is_moved = {**before, "status": now["status"]} == now
    what = f"is {pet.status or 'without a status'}" if is_moved else "is changed"
    name, undo = isolated(pet.name), _undo_of_change(pet, before, now)
    done = f"{name} {what}."
    if now["status"] == "sold" != before["status"]:
        done += f" {NOT_COUNTED}"
    notice = change_notice(name, done, undo, request.form.text("undo"))
    return await request.redirect(path, notice)


def _undo_of_change(pet: Pet, before: Texts, now: Texts) -> Undo:
    back, label = {**before}, "Undo"
    was = back["status"] or None
    if back["status"] != now["status"] and was not in statuses_after(pet.status):
        back["status"], label = "available", "Make it available again"
    return Undo(f"/pets/{pet.id}", undo_fields(back, now, Result(pet).version), label)


async def _reserve(request: PageRequest) -> Response:
    order, seen, name = await _placed(request)
    until = ""
    if order.reserved_until is not UNSET:
        lapse = local_time(order.reserved_until, request.time_zone)
        days = (lapse.date() - request.today).days
        day = ("today", "tomorrow")[days] if days in (0, 1) else f"{lapse.day} {lapse:%b %Y}"
        until = f" until {day} {lapse:%H:%M}"
    notice = Notice(
        f"Reserved {isolated(name)}{until} (order {order.id}).",
        Undo(f"/orders/{order.id}/cancel", seen),
    )
    return await request.redirect(f"/orders/{order.id}", notice)


async def _sell(request: PageRequest) -> Response:
    order, seen, name = await _placed(request, complete=True)
    page = f"/pets/{order.pet_id}"
    undo = Undo(f"/orders/{order.id}/return", {**seen, "back": page})
    return await request.redirect(page, Notice(sold_in_words(order, name), undo))


async def _placed(request: PageRequest, **more: bool) -> tuple[Order, dict[str, str], str]:
    """Order the pet, which its form may make available first; return what an undo needs, too."""
    fields = order_form(request)
    body = {"petId": request.path_id, **more, **fields.body(fields.typed(request.form))}
    request.decoded("placeOrder", body)
    pet = await request.find_pet(request.path_id)
    if pet and pet.status != "available" and request.form.text("frees") == version_of(pet):
        with suppress(PreconditionFailed, PetReserved):  # the other click of two
            available, version = {"status": "available"}, Result(pet).version
            await request.execute("updatePet", available, if_match=version)
    placed = await request.execute("placeOrder", body)
    order: Order = placed.value
    name = pet.name if pet else f"pet {order.pet_id}"
    return order, {"version": placed.version, "seen": order.status}, name


async def _delete(request: PageRequest) -> Response:
    before = await _get(request)
    pet: Pet = before.value
    await request.execute("deletePet")
    undo = _again(pet)
    is_back = request.form.text("back") == "new"
    path = _next_to(pet) if is_back else request.place("/pets")
    return await request.redirect(path, Notice(f"{isolated(pet.name)} is deleted.", undo))


def version_of(pet: Pet) -> str:
    """Return the version of a pet, short: it tells what a person saw from what is there now."""
    return Result(pet).version[1 : 1 + _VERSION]


def box_of(pet: Pet) -> str:
    """Return the value of the checkbox of a pet: its id, and the version that is shown."""
    return f"{pet.id}.{version_of(pet)}"


def _again(pet: Pet) -> Undo:
    again = FORM.texts(pet) | {"once": Result(pet).version, "again": "1"}
    return Undo("/pets", again, "Add it again, with a new number")


async def _get(request: PageRequest) -> Result[Any]:
    pet = await request.find_pet(request.path_id)
    if pet is None:
        raise NotFound(f"there is no pet {request.path_id}; it may have been deleted")
    return Result(pet)


async def _download(request: PageRequest) -> Response:
    async def rows_of(pets: Sequence[Pet]) -> list[dict[str, Any]]:
        names = await request.category_names({pet.category_id for pet in pets})
        return [to_builtins(pet) | {"category": names.get(pet.category_id, "")} for pet in pets]

    query = list_query(request.form)
    return await download_list(request, "pets", EXPORTED, "listPets", query, rows_of)


PAGES = (
    ConsolePage("GET", "/pets", _list, "listPets", _list),
    ConsolePage("GET", "/pets/new", _new, "createPet"),
    ConsolePage("POST", "/pets", _create, "createPet", _new),
    ConsolePage("GET", "/pets/{petId}", _show, "listPets"),
    ConsolePage("POST", "/pets/{petId}", _update, "updatePet", _show),
    ConsolePage("POST", "/pets/{petId}/sell", _sell, "placeOrder", _show),
    ConsolePage("POST", "/pets/{petId}/reserve", _reserve, "placeOrder", _show),
    ConsolePage("POST", "/pets/{petId}/delete", _delete, "deletePet", _show),
    ConsolePage("GET", "/pets/export.csv", _download, "listPets", has_file=True),
)
