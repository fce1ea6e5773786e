"""The pages of categories: list, add, rename, delete."""

from typing import Any

from petstore.categories.model import Category
from petstore.console.categories import categories_named, texts_of
from petstore.console.forms import Field, FieldSet, optional, undo_fields
from petstore.console.history import deleted_page, history_of
from petstore.console.page import ConsolePage, Notice, PageRequest, Undo, change_notice
from petstore.console.templates import isolated
from petstore.errors import InvalidParameter, NotFound, PetstoreError
from petstore.http.messages import Response
from petstore.interface.messages import json_response
from petstore.interface.operation import Result

_SUGGESTED = 100
_FORM = FieldSet(
    Field("name", "Name", attributes={"aria-required": "true"}),
    Field("description", "Description", parse=optional, hint="May be empty"),
)


async def _list(visit: PageRequest, error: PetstoreError | None = None) -> Response:
    """Return the list, after a ``NotFound`` with the form that adds what was changed anew."""
    found, history = Result[list[Category]]([]), None
    if not isinstance(error, InvalidParameter):
        found = await visit.list_page("listCategories")
    if isinstance(error, NotFound):
        form = _FORM.anew(visit.form, error)
        history = await history_of(visit, f"category/{visit.path_id}")
    else:
        form = _FORM.new(visit.form, error)
    return visit.page(
        "categories.html",
        error=error,
        categories=found.value,
        cursor=found.next,
        form=form,
        history=history,
    )


async def _create(visit: PageRequest) -> Response:
    body = _FORM.body(_FORM.typed(visit.form))
    created = await visit.execute("createCategory", body)
    category: Category = created.value
    undo = Undo(f"/categories/{category.id}/delete", {"version": created.version})
    text = f"{isolated(category.name)} is now category {category.id}."
    return await visit.redirect("/categories", Notice(text, undo))


async def _show(visit: PageRequest, error: PetstoreError | None = None) -> Response:
    if isinstance(error, NotFound):
        return await _list(visit, _not_found(visit))
    try:
        found = await _get(visit)
    except NotFound as gone:
        return deleted_page(visit, await history_of(visit, f"category/{visit.path_id}"), gone)
    now = _FORM.texts(found.value)
    form = _FORM.shown(now, found.version, visit.form, error)
    return visit.page(
        "category.html",
        error=error,
        found=found,
        now=now,
        form=form,
        history=await history_of(visit, f"category/{visit.path_id}"),
    )


async def _update(visit: PageRequest) -> Response:
    edit = _FORM.edit(visit.form)
    changed = await visit.execute("updateCategory", _FORM.values(edit.changes))
    now = _FORM.texts(changed.value)
    before = edit.before(now)
    if before == now:
        return await visit.redirect("/categories", Notice("Nothing was changed."))
    name, what = isolated(now["name"]), f"{isolated(now['name'])} is changed."
    if {**before, "name": now["name"]} == now:
        what = f"{isolated(before['name'])} is now called {name}."
    undo = Undo(f"/categories/{visit.path_id}", undo_fields(before, now, changed.version))
    notice = change_notice(name, what, undo, visit.form.text("undo"))
    return await visit.redirect("/categories", notice)


async def _delete(visit: PageRequest) -> Response:
    before = await _get(visit)
    category: Category = before.value
    await visit.execute("deleteCategory")
    fields = {**_FORM.texts(category), "once": before.version}
    undo = Undo("/categories", fields, "Add it again, with a new number")
    notice = Notice(f"{isolated(category.name)} is deleted.", undo)
    return await visit.redirect("/categories", notice)


async def _suggest(visit: PageRequest) -> Response:
    """Return names for the field of a category, in JSON: those that begin with what was typed."""
    names = await categories_named(visit, visit.form.line("name"), _SUGGESTED)
    return json_response(200, [*texts_of(names)], [b"cache-control: no-store"])


async def _get(visit: PageRequest) -> Result[Any]:
    try:
        return await visit.execute("getCategory")
    except NotFound:
        raise _not_found(visit) from None


def _not_found(visit: PageRequest) -> NotFound:
    return NotFound(f"there is no category {visit.path_id}; somebody may have deleted it")


PAGES = (
    ConsolePage("GET", "/categories", _list, "listCategories", _list),
    ConsolePage("POST", "/categories", _create, "createCategory", _list),
    ConsolePage("GET", "/categories/names", _suggest, "listCategories"),
    ConsolePage("GET", "/categories/{categoryId}", _show, "getCategory"),
    ConsolePage("POST", "/categories/{categoryId}", _update, "updateCategory", _show),
    ConsolePage("POST", "/categories/{categoryId}/delete", _delete, "deleteCategory", _show),
)
