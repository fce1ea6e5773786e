"""The pages of animals: find, add, change, sell, reserve, delete."""

import secrets
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from msgspec import UNSET
from msgspec.structs import replace

from petstore.console.category_fields import (
    category_id_of,
    category_names,
    category_text,
    suggested_names,
)
from petstore.console.edits import Difference, Edit, decode_edit, editor, undo_fields
from petstore.console.forms import line, problem_of, typed_id
from petstore.console.notices import Notice, Undo, change_notice
from petstore.console.orders import page_after
from petstore.console.page import Page, Result, Visit
from petstore.console.templates import isolated
from petstore.domain.orders import OPEN_STATUSES, PET_AFTER, Order
from petstore.domain.pets import Pet, PetStatus, statuses_after
from petstore.errors import (
    Conflict,
    InvalidBody,
    InvalidParameter,
    NotFound,
    PetNotAvailable,
    PetstoreError,
    PreconditionFailed,
    UnknownCategory,
    UnknownPet,
)
from petstore.http.messages import Response

_ON_A_PAGE = 50
_FIELDS = ("name", "categoryId", "status")
_LABELS = {"name": "Name", "categoryId": "Category", "status": "Status", "id": "Number"}
_REFUSED = (InvalidBody, UnknownCategory, Conflict)


async def _list(visit: Visit) -> Response:
    wanted = {name: visit.form.line(name) for name in ("name", "status", "categoryId", "id")}
    problem, found, suggested = None, Result([], "", ""), None
    try:
        found = await visit.call("listPets", query=await _query(visit, wanted))
        suggested = await _animal(visit, typed_id(wanted["name"]))
    except (InvalidParameter, UnknownCategory) as error:
        problem = problem_of(error, _LABELS)
    return visit.page(
        "pets.html",
        400 if problem else 200,
        pets=found.value,
        cursor=found.cursor,
        is_short=bool(found.cursor) and len(found.value) < _ON_A_PAGE,
        suggested=suggested,
        names=await category_names(visit, {pet.categoryId for pet in found.value}),
        suggested_categories=await suggested_names(visit),
        wanted=wanted,
        filters={name: text for name, text in wanted.items() if text},
        problem=problem,
    )


async def _query(visit: Visit, wanted: Mapping[str, str]) -> dict[str, Any]:
    """Return the query of ``listPets``: by name, or the newest first."""
    pet_id = typed_id(wanted["id"])
    if wanted["id"] and pet_id is None:
        msg = "id: expected a number, such as 7"
        raise InvalidParameter(msg)
    category = wanted["categoryId"]
    return {
        "name": wanted["name"] or None,
        "status": wanted["status"] or None,
        "categoryId": await category_id_of(visit, category) if category else None,
        "id": pet_id,
        "sort": None if wanted["name"] else "-id",
        "limit": _ON_A_PAGE,
        "cursor": visit.form.text("cursor") or None,
    }


async def _animal(visit: Visit, pet_id: int | None) -> Pet | None:
    """Return an animal, if there is one with this id."""
    if pet_id is None:
        return None
    found = await visit.call("listPets", query={"id": pet_id})
    return found.value[0] if found.value else None


async def _new(visit: Visit) -> Response:
    typed = _typed(visit)
    if "status" not in visit.form.fields:
        typed["status"] = "available"
    return await _add_page(visit, typed)


async def _create(visit: Visit) -> Response:
    typed = _typed(visit)
    try:
        body = await _body(visit, typed)
        if not typed["status"]:
            del body["status"]
        created = await visit.call("createPet", body=body, once=visit.form.text("once"))
    except _REFUSED as error:
        return await _add_page(visit, typed, error)
    pet: Pet = created.value
    undo = Undo(f"/pets/{pet.id}/delete", {"version": created.tag})
    notice = Notice(
        f"{isolated(pet.name)} is in the store: animal {pet.id}.",
        undo if visit.may("listPets") else None,  # it reads the animal first
    )
    if visit.form.text("again"):
        return await visit.redirect(f"/pets/{pet.id}", notice)
    kept = urlencode({name: typed[name] for name in ("categoryId", "status")})
    return await visit.redirect(f"/pets/new?{kept}", notice)


async def _show(visit: Visit) -> Response:
    return await _page(visit, await _get(visit))


async def _update(visit: Visit) -> Response:
    edit = decode_edit(visit.form, _FIELDS)
    try:
        before = await _get(visit)
        changed = await visit.call(
            "updatePet",
            path_id=visit.path_id,
            body=await _patch(visit, edit.changes),
            if_match=visit.form.text("version"),
        )
    except NotFound as error:
        return await _gone_page(visit, edit, error)
    except (*_REFUSED, PreconditionFailed) as error:
        return await _page(visit, await _get(visit), edit, error)
    notice = await _change_notice(visit, before.value, changed)
    return await visit.redirect(f"/pets/{visit.path_id}", notice)


async def _reserve(visit: Visit) -> Response:
    try:
        placed = await visit.call(
            "placeOrder", body={"petId": visit.path_id}, once=visit.form.text("once")
        )
    except UnknownPet:
        raise _not_found(visit) from None
    except PetNotAvailable as error:
        return await _page(visit, await _get(visit), None, error)
    order: Order = placed.value
    undo = Undo(f"/orders/{order.id}/cancel", {"version": placed.tag, "seen": order.status})
    notice = Notice(f"Order {order.id} reserves the animal.", undo)
    return await visit.redirect(page_after(visit, order), notice)


async def _delete(visit: Visit) -> Response:
    before = await _get(visit)
    pet: Pet = before.value
    tag = visit.form.text("version")
    try:
        await visit.call("deletePet", path_id=visit.path_id, if_match=tag)
    except (Conflict, PreconditionFailed) as error:
        edit = decode_edit(visit.form, _FIELDS)
        return await _page(visit, await _get(visit), edit, error)
    fields = _fields(pet, await category_names(visit, [pet.categoryId]))
    fields |= {"once": secrets.token_urlsafe(), "again": "1"}
    undo = Undo("/pets", fields, "Add it again, with a new number")
    return await visit.redirect("/pets", Notice(f"{isolated(pet.name)} is deleted.", undo))


async def _get(visit: Visit) -> Result:
    """Return the animal of the path and its version, or raise ``NotFound``."""
    found = await visit.call("listPets", query={"id": visit.path_id})
    if not found.value:
        raise _not_found(visit)
    return found._replace(value=found.value[0])


def _not_found(visit: Visit) -> NotFound:
    return NotFound(f"there is no animal {visit.path_id}; somebody may have deleted it")


async def _add_page(
    visit: Visit, typed: Mapping[str, str], error: PetstoreError | None = None
) -> Response:
    """Return the form of a new animal. A ``NotFound`` means that its predecessor was deleted."""
    is_gone = isinstance(error, NotFound)
    problem = None if error is None or is_gone else problem_of(error, _LABELS)
    return visit.page(
        "new_pet.html",
        200 if error is None else error.status,
        typed=typed,
        is_gone=is_gone,
        suggested_categories=await suggested_names(visit),
        problem=problem,
    )


async def _gone_page(visit: Visit, edit: Edit, error: NotFound) -> Response:
    """Tell that the animal was deleted meanwhile, and offer to add it anew, as it was typed."""
    return await _add_page(visit, edit.whole(_FIELDS, error), error)


async def _page(
    visit: Visit, found: Result, edit: Edit | None = None, error: PetstoreError | None = None
) -> Response:
    """Return the page of an animal, with the form as it was sent and what is wrong with it.

    After a conflict the form has what is there now, and what the person changed of it.
    """
    pet: Pet = found.value
    now = _fields(pet, await category_names(visit, [pet.categoryId]))
    order = await _open_order(visit, pet)
    form = editor(now, found.tag, edit, visit.form.text("version"), error, _LABELS)
    return visit.page(
        "pet.html",
        200 if error is None else error.status,
        pet=pet,
        tag=found.tag,
        now=now,
        **form._asdict(),
        order=order,
        following=() if order else tuple(filter(None, statuses_after(pet.status))),
        choices=_choices(pet, order, form.edit.typed["status"]),
        error=error and error.code,
        ended=await _ended_order(visit, pet, form.differences),
        labels=_LABELS,
        suggested_categories=await suggested_names(visit),
    )


async def _open_order(visit: Visit, pet: Pet) -> Order | None:
    """Return the order that reserves an animal, if there is one."""
    order = await _latest_order(visit, pet) if pet.status == "pending" else None
    return order if order and order.status in OPEN_STATUSES else None


async def _ended_order(visit: Visit, pet: Pet, differences: Sequence[Difference]) -> Order | None:
    """Return the order whose end made a pending animal what it is now."""
    was_pending = any(difference.opened == "pending" for difference in differences)
    order = await _latest_order(visit, pet) if was_pending else None
    return order if order and PET_AFTER.get(order.status) == pet.status else None


async def _latest_order(visit: Visit, pet: Pet) -> Order | None:
    """Return the newest order of an animal, if the person may see it. No other one can be open."""
    if not visit.may("listOrders"):
        return None
    latest = {"petId": pet.id, "sort": "-id", "limit": 1}
    orders: list[Order] = (await visit.call("listOrders", query=latest)).value
    return orders[0] if orders else None


async def _change_notice(visit: Visit, before: Pet, changed: Result) -> Notice:
    """Return what a change did, and the form that changes it back as far as that is allowed."""
    after: Pet = changed.value
    if after == before:
        return Notice("Nothing was changed.")
    names = await category_names(visit, {before.categoryId, after.categoryId})
    back, label = _fields(before, names), "Undo"
    if before.status != after.status and _or_none(before) not in statuses_after(after.status):
        back["status"], label = "available", "Make it available again"
    undo = Undo(f"/pets/{after.id}", undo_fields(back, _fields(after, names), changed.tag), label)
    is_moved = replace(before, status=after.status) == after
    what = f"is {after.status or 'without a status'}" if is_moved else "is changed"
    name = isolated(after.name)
    return change_notice(name, f"{name} {what}.", undo, visit.form.text("undo"))


def _or_none(pet: Pet) -> PetStatus | None:
    return None if pet.status is UNSET else pet.status


def _choices(pet: Pet, order: Order | None, typed: str) -> list[tuple[str, str]]:
    """Return the statuses that the form offers: the present one, what may follow, the typed one."""
    following = () if order else statuses_after(pet.status)
    statuses = dict.fromkeys([pet.status or "", *(status or "" for status in following), typed])
    return [(status, status or "none") for status in statuses]


def _typed(visit: Visit) -> dict[str, str]:
    return {name: visit.form.line(name) for name in _FIELDS}


def _fields(pet: Pet, names: Mapping[int, str]) -> dict[str, str]:
    """Return the texts that the form shows of an animal."""
    return {
        "name": line(pet.name),
        "categoryId": category_text(pet.categoryId, names),
        "status": pet.status or "",
    }


async def _body(visit: Visit, typed: Mapping[str, str]) -> dict[str, Any]:
    """Return what a person typed as the body of an operation, which says what is wrong with it."""
    body: dict[str, Any] = dict(typed)
    if "categoryId" in typed:
        body["categoryId"] = await category_id_of(visit, typed["categoryId"])
    return body


async def _patch(visit: Visit, typed: Mapping[str, str]) -> dict[str, Any]:
    body = await _body(visit, typed)
    return body | {"status": None} if body.get("status") == "" else body


PAGES = (
    Page("GET", "/pets", _list, needs="listPets"),
    Page("GET", "/pets/new", _new, needs="createPet"),
    Page("POST", "/pets", _create, needs="createPet"),
    Page("GET", "/pets/{petId}", _show, needs="listPets"),
    Page("POST", "/pets/{petId}", _update, needs="updatePet"),
    Page("POST", "/pets/{petId}/reserve", _reserve, needs="placeOrder"),
    Page("POST", "/pets/{petId}/delete", _delete, needs="deletePet"),
)
