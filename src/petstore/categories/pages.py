"""The pages of the stock: how many pets each category has; add, rename and delete categories."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from msgspec import UNSET

from petstore.categories.model import Category
from petstore.console.forms import (
    INSTEAD,
    Field,
    FieldSet,
    ShownForm,
    choice,
    isolated,
    line,
    optional,
    undo_fields,
)
from petstore.console.history import deleted_page, history_of
from petstore.console.page import ConsolePage, Notice, PageRequest, Undo, change_notice
from petstore.domain.decoding import integer_in
from petstore.domain.fields import INT64_MAX
from petstore.domain.names import name_key
from petstore.errors import (
    CategoryNameTaken,
    InvalidBody,
    InvalidParameter,
    NotFound,
    PetstoreError,
    UnknownCategory,
)
from petstore.http.messages import Response
from petstore.interface.messages import json_response
from petstore.interface.operation import Result
from petstore.pets.model import CategoryCounts, Inventory

_ON_A_PAGE = 100
_SUGGESTED = 100
_NONE = CategoryCounts(available=0, pending=0, sold=0)
_FORM = FieldSet(
    Field("name", "Name", attributes={"aria-required": "true"}),
    Field("description", "Description", parse=optional, hint="May be empty"),
)
_LISTED = 30
_FIRST = 100
_MEANT = 3
_MAX_NAME = 100
_NAME = "categoryId"
_ADDED = "addedCategory"
_REQUIRED = {"aria-required": "true"}
# What the list has for a new category.
_NEW = "+"
_NEW_NAME = Field(
    *(_ADDED, "New category"), caption="What is it called?", attributes={"maxlength": _MAX_NAME}
)


class CategoryStock(NamedTuple):
    """How many pets a category has; ``width`` in percent. All beyond the first have no ``id``."""

    id: int | None
    name: str
    counts: CategoryCounts
    description: str = ""
    is_registered: bool = False
    width: float = 0


async def stock_of(request: PageRequest, categories: Mapping[int, Category]) -> list[CategoryStock]:
    """Return the stock of categories and of those that are not registered, the lowest first."""
    found = Inventory(available=0, pending=0, sold=0)
    if request.may("getInventory"):
        found = (await request.execute("getInventory", query={"by": "category"})).value
    counts = {each.category_id: each for each in found.categories or ()}
    others = [each for each in counts if each is not UNSET and each not in categories]
    names = await request.category_names(others)
    rows = [
        CategoryStock(
            *(each.id, each.name, counts.get(each.id, _NONE), each.description or ""),
            is_registered=True,
        )
        for each in categories.values()
    ]
    if not request.form.text("cursor"):
        rows += [
            CategoryStock(each, f"category {each}", counts[each])
            for each in others
            if each not in names
        ]
        if UNSET in counts:
            rows.append(CategoryStock(None, "all other categories", counts[UNSET]))
    most = max((row.counts.available for row in rows), default=0) or 1
    rows.sort(key=lambda row: (row.id is None, row.counts.available, row.name.casefold()))
    return [row._replace(width=round(100 * row.counts.available / most, 2)) for row in rows]


async def _list(request: PageRequest, error: PetstoreError | None = None) -> Response:
    found, history = Result[list[Category]]([]), None
    if not isinstance(error, InvalidParameter):
        found = await request.list_page("listCategories", _ON_A_PAGE)
    if isinstance(error, NotFound):
        form = _FORM.as_new_resource(request.form, error)
        history = await history_of(request, f"category/{request.path_id}")
    else:
        form = _FORM.new(request.form, error)
    return request.page(
        "stock.html",
        error=error,
        stock=await stock_of(request, {each.id: each for each in found.value}),
        cursor=found.next,
        form=form,
        history=history,
    )


async def _create(request: PageRequest) -> Response:
    body = _FORM.body(_FORM.typed(request.form))
    created = await request.execute("createCategory", body)
    category: Category = created.value
    undo = Undo(f"/categories/{category.id}/delete", {"version": created.version})
    text = f"{isolated(category.name)} is now category {category.id}."
    return await request.redirect("/categories", Notice(text, undo))


async def _show(request: PageRequest, error: PetstoreError | None = None) -> Response:
    if isinstance(error, NotFound):
        return await _list(request, _not_found(request))
    try:
        found = await _get(request)
    except NotFound as gone:
        return deleted_page(request, await history_of(request, f"category/{request.path_id}"), gone)
    now = _FORM.texts(found.value)
    form = _FORM.shown(now, found.version, request.form, error)
    return request.page(
        "category.html",
        error=error,
        found=found,
        now=now,
        form=form,
        history=await history_of(request, f"category/{request.path_id}"),
    )


async def _update(request: PageRequest) -> Response:
    edit = _FORM.edit(request.form)
    changed = await request.execute("updateCategory", _FORM.values(edit.changes))
    now = _FORM.texts(changed.value)
    before = edit.before(now)
    if before == now:
        return await request.redirect("/categories", Notice("Nothing was changed."))
    name, what = isolated(now["name"]), f"{isolated(now['name'])} is changed."
    if {**before, "name": now["name"]} == now:
        what = f"{isolated(before['name'])} is now called {name}."
    undo = Undo(f"/categories/{request.path_id}", undo_fields(before, now, changed.version))
    notice = change_notice(name, what, undo, request.form.text("undo"))
    return await request.redirect("/categories", notice)


async def _delete(request: PageRequest) -> Response:
    before = await _get(request)
    category: Category = before.value
    await request.execute("deleteCategory")
    fields = {**_FORM.texts(category), "once": before.version}
    undo = Undo("/categories", fields, "Add it again, with a new number")
    notice = Notice(f"{isolated(category.name)} is deleted.", undo)
    return await request.redirect("/categories", notice)


async def _suggest(request: PageRequest) -> Response:
    """Return names for the field of a category, in JSON: those that begin with what was typed."""
    names = await categories_named(request, request.form.line("name"), _SUGGESTED)
    return json_response(200, [*texts_of(names)], [b"cache-control: no-store"])


async def _get(request: PageRequest) -> Result[Any]:
    try:
        return await request.execute("getCategory")
    except NotFound:
        raise _not_found(request) from None


def _not_found(request: PageRequest) -> NotFound:
    return NotFound(f"there is no category {request.path_id}; it may have been deleted")


def category_text(category_id: int, names: Mapping[int, str]) -> str:
    """Return what the field shows of a category: a text that means this category and no other."""
    name = names.get(category_id, "")
    is_clear = name and line(name) == name and integer_in(name) is None and name != _NEW
    return name if is_clear else str(category_id)


# The field for the category of a pet: one of a list, or a name or a number that is typed. What was
# typed in it


async def with_category(
    request: PageRequest, operation_id: str, body: dict[str, Any]
) -> dict[str, Any]:
    """Return a body with the id of the typed category, which it may add, or why it has none."""
    if _NAME not in body:
        return body
    text, added = body[_NAME], added_category(request)
    if text == _NEW and not added:
        return body | {_NAME: InvalidBody(f"{_ADDED}: expected the name of the new category")}
    category_id = await category_id_of(request, added or text)
    if category_id is None and added and _is_valid(request, operation_id, body | {_NAME: 0}):
        try:
            category_id = await add_category(request, added)
        except InvalidBody as error:
            return body | {_NAME: InvalidBody(_ADDED + error.message.removeprefix("name"))}
    return body | {_NAME: unknown_category(text) if category_id is None else category_id}


async def with_category_filter(request: PageRequest, body: dict[str, Any]) -> dict[str, Any]:
    """Return filters with the id of the typed category, perhaps of none registered."""
    text = body.get(_NAME)
    if text is None:
        return body
    category_id = integer_in(text)
    if category_id is None:
        category_id = await category_id_of(request, text)
    return body | {_NAME: unknown_category(text) if category_id is None else category_id}


def added_category(request: PageRequest) -> str:
    added = request.form.line(_ADDED)
    return added if request.form.line(_NAME) in (_NEW, added) else ""


async def category_id_of(request: PageRequest, text: str) -> int | None:
    """Return the id of the registered category that a text means: a number is never a name."""
    number = integer_in(text)
    if number is None:
        found = await categories_named(request, text, 1) if text else {}
        same = (each for each, name in found.items() if name_key(name) == name_key(text))
        return next(same, None)
    if request.form.text("undo"):
        return number
    is_known = abs(number) <= INT64_MAX and await request.category_names([number])
    return number if is_known else None


async def categories_named(request: PageRequest, typed: str, limit: int) -> dict[int, str]:
    query = {"limit": limit, "name": typed or None}
    try:
        found = (await request.execute("listCategories", query=query)).value
    except InvalidParameter:  # no name is like that
        return {}
    return {each.id: each.name for each in sorted(found, key=lambda each: name_key(each.name))}


def _is_valid(request: PageRequest, operation_id: str, body: Mapping[str, Any]) -> bool:
    try:
        request.decoded(operation_id, body)
    except InvalidBody:
        return False
    return True


async def add_category(request: PageRequest, name: str) -> int | None:
    """Return the id of a new category, or of one that was just added."""
    try:
        created = await request.execute("createCategory", {"name": name}, if_match="")
    except CategoryNameTaken:
        return await category_id_of(request, name)
    category_id: int = created.value.id
    return category_id


def unknown_category(text: str) -> InvalidBody | UnknownCategory:
    if not text:
        return InvalidBody(f"{_NAME}: choose a category")
    return UnknownCategory(f"{_NAME}: there is no category {_quoted(text)}")


def _quoted(text: str) -> str:
    short = text if len(text) <= _MAX_NAME else f"{text[: _MAX_NAME - 1]}…"
    return f"“{isolated(short)}”"


# What a form shows of it


async def category_form(request: PageRequest, form: ShownForm, any_: str = "") -> ShownForm:
    """Return a form with a list of categories, or a text field if they are many."""
    names = await categories_named(request, "", _FIRST)
    may_add = not any_ and request.may("createCategory")
    text, hint, added = form.typed[_NAME], "", added_category(request) if may_add else ""
    if added and await category_id_of(request, added) is not None:
        text, hint = added, f"{isolated(added)} is a category now."  # what followed it has failed
    text = _text_in(names, text)
    is_known = text in ("", _NEW) or integer_in(text) is not None
    fields: tuple[Field, ...]
    if names and len(names) <= _LISTED and (is_known or text in texts_of(names)):
        fields = _list_of(names, text, any_, hint, may_add=may_add)
    else:
        fields = (_typed_field(names, hint, is_filter=bool(any_)),)
        if not is_known:
            form = await _with_ways(request, form, text, may_add=may_add)
    if form.problem:
        form = form._replace(problem=form.problem.changed(_ADDED, label=_NEW_NAME.label))
    typed = {**form.typed, _NAME: text, _ADDED: request.form.line(_ADDED) if text == _NEW else ""}
    shown = [one for each in form.fields for one in (fields if each.name == _NAME else [each])]
    return form._replace(fields=shown, typed=typed)


def _text_in(names: Mapping[int, str], typed: str) -> str:
    """Return the text of the known category that a person typed in another way, else the typed."""
    number, key = integer_in(typed), name_key(typed)
    for category_id, name in names.items():
        if number == category_id or (number is None and name_key(name) == key):
            return category_text(category_id, names)
    return typed


def texts_of(names: Mapping[int, str]) -> dict[str, str]:
    return {category_text(category_id, names): name for category_id, name in names.items()}


def _list_of(
    names: Mapping[int, str], text: str, any_: str, hint: str, *, may_add: bool
) -> tuple[Field, ...]:
    options = texts_of(names)
    if any_ or not text:
        options = {"": any_ or "Choose…", **options}
    options.setdefault(text, f"{text}, which is no category")  # but a number
    if not may_add:
        return (choice(_NAME, "Category", *options.items(), hint=hint),)
    listed = choice(_NAME, "Category", *(options | {_NEW: "New category…"}).items(), hint=hint)
    return listed, _NEW_NAME


def _typed_field(names: Mapping[int, str], hint: str, *, is_filter: bool) -> Field:
    if not names:
        hint = "There are no categories yet. Type the name of the first one."
    return Field(
        *(_NAME, "Category"),
        options=[(text, name) for text, name in texts_of(names).items()],
        hint=hint or ("" if is_filter else "The beginning of its name."),
        attributes={"data-suggest": "categories/names"} | ({} if is_filter else _REQUIRED),
    )


async def _with_ways(
    request: PageRequest, form: ShownForm, text: str, *, may_add: bool
) -> ShownForm:
    problem = form.problem and form.problem.about(_NAME)
    if not form.problem or not problem:
        return form
    meant = texts_of(await categories_named(request, text, _MEANT))
    ways = [(INSTEAD + _NAME, text, f"Use {isolated(name)}") for text, name in meant.items()]
    if may_add and len(text) <= _MAX_NAME:
        ways.append((_ADDED, text, f"Add {_quoted(text)} as a category"))
    names = " or ".join(isolated(name) for name in meant.values())
    told = f"{problem.text}. Did you mean {names}?" if names else problem.text
    return form._replace(problem=form.problem.changed(_NAME, text=told, ways=ways))


PAGES = (
    ConsolePage("GET", "/categories", _list, "listCategories", _list),
    ConsolePage("POST", "/categories", _create, "createCategory", _list),
    ConsolePage("GET", "/categories/names", _suggest, "listCategories"),
    ConsolePage("GET", "/categories/{categoryId}", _show, "getCategory"),
    ConsolePage("POST", "/categories/{categoryId}", _update, "updateCategory", _show),
    ConsolePage("POST", "/categories/{categoryId}/delete", _delete, "deleteCategory", _show),
)
