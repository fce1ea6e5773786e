"""The pages of animals: find, add, change, delete."""

from typing import Any

from msgspec import UNSET

from petstore.console.forms import Problem, problem_of
from petstore.console.notices import Notice, Undo
from petstore.console.page import Page, Result, Visit
from petstore.domain.pets import Pet
from petstore.errors import (
    Conflict,
    InvalidBody,
    InvalidParameter,
    NotFound,
    PetstoreError,
    PreconditionFailed,
    UnknownCategory,
)
from petstore.http.messages import Response

_ON_A_PAGE = 50
_REFUSED = (InvalidBody, UnknownCategory, Conflict)


async def _list(visit: Visit) -> Response:
    wanted = {name: visit.form.text(name) for name in ("name", "status", "categoryId", "id")}
    query: dict[str, Any] = {name: text or None for name, text in wanted.items()}
    query |= {"limit": _ON_A_PAGE, "cursor": visit.form.text("cursor") or None}
    problem, found = None, Result([], "", "")
    try:
        found = await visit.call("listPets", query=query)
    except InvalidParameter as error:
        problem = problem_of(error)
    return visit.page(
        "pets.html",
        400 if problem else 200,
        pets=found.value,
        cursor=found.cursor,
        wanted=wanted,
        problem=problem,
    )


async def _new(visit: Visit) -> Response:
    return _form(visit, None, _typed(visit))


async def _create(visit: Visit) -> Response:
    typed = _typed(visit)
    try:
        created = await visit.call("createPet", body=_body(typed), once=visit.form.text("once"))
    except _REFUSED as error:
        return _form(visit, None, typed, error)
    pet: Pet = created.value
    return await visit.redirect("/pets/new", Notice(f"{pet.name} is in the store (#{pet.id})."))


async def _show(visit: Visit) -> Response:
    found = await _get(visit)
    return _form(visit, found, _fields(found.value))


async def _update(visit: Visit) -> Response:
    typed = _typed(visit)
    before = await _get(visit)
    tag = visit.form.text("version")
    body = _body(typed) | ({} if typed["status"] else {"status": None})
    try:
        changed = await visit.call("updatePet", path_id=visit.path_id, body=body, if_match=tag)
    except (*_REFUSED, PreconditionFailed) as error:
        return _form(visit, before, typed, error)
    undo = Undo(f"/pets/{visit.path_id}", {**_fields(before.value), "version": changed.tag})
    notice = Notice(f"{changed.value.name} is changed.", undo)
    return await visit.redirect(f"/pets/{visit.path_id}", notice)


async def _delete(visit: Visit) -> Response:
    before = await _get(visit)
    tag = visit.form.text("version")
    try:
        await visit.call("deletePet", path_id=visit.path_id, if_match=tag)
    except (Conflict, PreconditionFailed) as error:
        return _form(visit, before, _fields(before.value), error)
    return await visit.redirect("/pets", Notice(f"{before.value.name} is deleted."))


async def _get(visit: Visit) -> Result:
    """Return the animal of the path and its version, or raise ``NotFound``."""
    found = await visit.call("listPets", query={"id": visit.path_id})
    if not found.value:
        msg = f"there is no animal {visit.path_id}; somebody may have deleted it"
        raise NotFound(msg)
    return found._replace(value=found.value[0])


def _form(
    visit: Visit, found: Result | None, typed: dict[str, str], error: PetstoreError | None = None
) -> Response:
    problem: Problem | None = None if error is None else problem_of(error)
    return visit.page(
        "pet.html",
        200 if error is None else error.status,
        found=found,
        typed=typed,
        problem=problem,
        is_conflict=isinstance(error, PreconditionFailed),
    )


def _typed(visit: Visit) -> dict[str, str]:
    return {name: visit.form.text(name) for name in ("name", "categoryId", "status")}


def _fields(pet: Pet) -> dict[str, str]:
    status = "" if pet.status is UNSET else pet.status
    return {"name": pet.name, "categoryId": str(pet.categoryId), "status": status}


def _body(typed: dict[str, str]) -> dict[str, Any]:
    """Return what a person typed as the body of an operation, which says what is wrong with it."""
    category = typed["categoryId"]
    number = int(category) if category.isascii() and category.isdigit() else category
    body: dict[str, Any] = {"name": typed["name"], "categoryId": number}
    return body | ({"status": typed["status"]} if typed["status"] else {})


PAGES = (
    Page("GET", "/pets", _list, needs="listPets"),
    Page("GET", "/pets/new", _new, needs="createPet"),
    Page("POST", "/pets", _create, needs="createPet"),
    Page("GET", "/pets/{petId}", _show, needs="listPets"),
    Page("POST", "/pets/{petId}", _update, needs="updatePet"),
    Page("POST", "/pets/{petId}/delete", _delete, needs="deletePet"),
)
