"""The pages of categories: list, add, rename, delete."""

import secrets
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from petstore.console.edits import Edit, decode_edit, editor, undo_fields
from petstore.console.forms import line, problem_of
from petstore.console.notices import Notice, Undo, change_notice
from petstore.console.page import Page, Result, Visit
from petstore.console.templates import isolated
from petstore.domain.categories import Category
from petstore.errors import (
    Conflict,
    InvalidBody,
    InvalidParameter,
    NotFound,
    PetstoreError,
    PreconditionFailed,
)
from petstore.http.messages import Response

_ON_A_PAGE = 50
_FIELDS = ("name", "description")
_LABELS = {"name": "Name", "description": "Description"}
_REFUSED = (InvalidBody, Conflict)


async def _list(visit: Visit) -> Response:
    return await _list_page(visit, dict.fromkeys(_FIELDS, ""))


async def _create(visit: Visit) -> Response:
    typed = {name: visit.form.line(name) for name in _FIELDS}
    body = {name: text for name, text in typed.items() if text or name == "name"}
    try:
        created = await visit.call("createCategory", body=body, once=visit.form.text("once"))
    except _REFUSED as error:
        return await _list_page(visit, typed, error)
    category: Category = created.value
    undo = Undo(f"/categories/{category.id}/delete", {"version": created.tag})
    return await visit.redirect(
        "/categories", Notice(f"{isolated(category.name)} is now category {category.id}.", undo)
    )


async def _show(visit: Visit) -> Response:
    return _page(visit, await _get(visit))


async def _update(visit: Visit) -> Response:
    edit = decode_edit(visit.form, _FIELDS)
    try:
        before = await _get(visit)
        changed = await visit.call(
            "updateCategory",
            path_id=visit.path_id,
            body=_patch(edit.changes),
            if_match=visit.form.text("version"),
        )
    except NotFound as error:
        return await _gone_page(visit, edit, error)
    except (*_REFUSED, PreconditionFailed) as error:
        return _page(visit, await _get(visit), edit, error)
    return await visit.redirect("/categories", _change_notice(visit, before.value, changed))


async def _delete(visit: Visit) -> Response:
    before = await _get(visit)
    category: Category = before.value
    tag = visit.form.text("version")
    try:
        await visit.call("deleteCategory", path_id=visit.path_id, if_match=tag)
    except (Conflict, PreconditionFailed) as error:
        return _page(visit, await _get(visit), decode_edit(visit.form, _FIELDS), error)
    fields = {**_fields(category), "once": secrets.token_urlsafe()}
    undo = Undo("/categories", fields, "Add it again, with a new number")
    return await visit.redirect(
        "/categories", Notice(f"{isolated(category.name)} is deleted.", undo)
    )


async def _get(visit: Visit) -> Result:
    """Return the category of the path and its version.

    Raises:
        NotFound: there is none.
    """
    try:
        return await visit.call("getCategory", path_id=visit.path_id)
    except NotFound:
        msg = f"there is no category {visit.path_id}; somebody may have deleted it"
        raise NotFound(msg) from None


async def _list_page(
    visit: Visit, typed: Mapping[str, str], error: PetstoreError | None = None
) -> Response:
    """Return the list, and the form of a new category.

    A ``NotFound`` means that somebody has deleted the category that the person was changing.
    """
    found = Result([], "", "")
    try:
        query = {"limit": _ON_A_PAGE, "cursor": visit.form.text("cursor") or None}
        found = await visit.call("listCategories", query=query)
    except InvalidParameter as refusal:
        error = refusal
    is_gone = isinstance(error, NotFound)
    problem = None if error is None or is_gone else problem_of(error, _LABELS)
    return visit.page(
        "categories.html",
        200 if error is None else error.status,
        categories=found.value,
        cursor=found.cursor,
        typed=typed,
        is_gone=is_gone,
        problem=problem,
    )


async def _gone_page(visit: Visit, edit: Edit, error: NotFound) -> Response:
    return await _list_page(visit, edit.whole(_FIELDS, error), error)


def _page(
    visit: Visit, found: Result, edit: Edit | None = None, error: PetstoreError | None = None
) -> Response:
    """Return the page of a category, with the form as it was sent and what is wrong with it."""
    category: Category = found.value
    now = _fields(category)
    form = editor(now, found.tag, edit, visit.form.text("version"), error, _LABELS)
    return visit.page(
        "category.html",
        200 if error is None else error.status,
        category=category,
        tag=found.tag,
        now=now,
        **form._asdict(),
        error=error and error.code,
        labels=_LABELS,
    )


def _change_notice(visit: Visit, before: Category, changed: Result) -> Notice:
    after: Category = changed.value
    if after == before:
        return Notice("Nothing was changed.")
    back = undo_fields(_fields(before), _fields(after), changed.tag)
    is_renamed = replace(before, name=after.name) == after
    name = isolated(after.name)
    what = f"{isolated(before.name)} is now called {name}." if is_renamed else f"{name} is changed."
    undo = Undo(f"/categories/{after.id}", back)
    return change_notice(name, what, undo, visit.form.text("undo"))


def _fields(category: Category) -> dict[str, str]:
    """Return the texts that the form shows of a category."""
    return {"name": line(category.name), "description": line(category.description or "")}


def _patch(changes: Mapping[str, str]) -> dict[str, Any]:
    return {name: text or (None if name == "description" else "") for name, text in changes.items()}


PAGES = (
    Page("GET", "/categories", _list, needs="listCategories"),
    Page("POST", "/categories", _create, needs="createCategory"),
    Page("GET", "/categories/{categoryId}", _show, needs="getCategory"),
    Page("POST", "/categories/{categoryId}", _update, needs="updateCategory"),
    Page("POST", "/categories/{categoryId}/delete", _delete, needs="deleteCategory"),
)
