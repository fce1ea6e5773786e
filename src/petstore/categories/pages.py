"""The pages of the stock: how many pets each category has; add, rename and delete categories."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from petstore.categories.model import Category
from petstore.console.forms import (
    Field,
    FieldSet,
    ShownForm,
    choice,
    isolated,
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
from petstore.interface.operation import Result
from petstore.pets.model import Inventory, StatusCounts

_ON_A_PAGE = 100
_PAGES_LISTED = 2
_NONE = StatusCounts()
_FORM = FieldSet(
    Field("name", "Name", attributes={"aria-required": "true"}),
    Field("description", "Description", parse=optional, hint="May be empty"),
)
_MAX_NAME = 100
_NAME = "categoryId"
_ADDED = "addedCategory"
# What the list has for a new category.
_NEW = "+"
_NEW_NAME = Field(
    *(_ADDED, "New category"), caption="What is it called?", attributes={"maxlength": _MAX_NAME}
)


class CategoryStock(NamedTuple):
    """How many pets a category has; ``width`` in percent."""

    id: int
    name: str
    counts: StatusCounts
    description: str = ""
    is_registered: bool = False
    width: float = 0


async def stock_of(request: PageRequest, categories: Mapping[int, Category]) -> list[CategoryStock]:
    """Return the stock of categories and of those that are not registered, the lowest first."""
    found = Inventory(available=0, pending=0, sold=0)
    if request.may("getInventory"):
        found = (await request.execute("getInventory", query={"by": "category"})).value
    counts = {each.category_id: each for each in found.categories or ()}
    others = [each for each in counts if each not in categories]
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
    most = max((row.counts.available for row in rows), default=0) or 1
    rows.sort(key=lambda row: (row.counts.available, row.name.casefold()))
    return [row._replace(width=round(100 * row.counts.available / most, 2)) for row in rows]


async def _list(request: PageRequest, error: PetstoreError | None = None) -> Response:
    found = Result[list[Category]]([])
    if not isinstance(error, InvalidParameter):
        found = await request.list_page("listCategories", _ON_A_PAGE)
    return request.page(
        "stock.html",
        error=error,
        stock=await stock_of(request, {each.id: each for each in found.value}),
        cursor=found.next,
        form=_FORM.new(request.form, error),
    )


async def _create(request: PageRequest) -> Response:
    body = _FORM.body(_FORM.typed(request.form))
    created = await request.execute("createCategory", body)
    category: Category = created.value
    undo = Undo(f"/categories/{category.id}/delete", {"version": created.version})
    text = f"{isolated(category.name)} is now category {category.id}."
    return await request.redirect("/categories", Notice(text, undo))


async def _show(request: PageRequest, error: PetstoreError | None = None) -> Response:
    try:
        found = await _get(request)
    except NotFound as gone:
        history = await history_of(request, f"category/{request.path_id}")
        return deleted_page(request, history, gone, _FORM)
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


async def _get(request: PageRequest) -> Result[Any]:
    try:
        return await request.execute("getCategory")
    except NotFound:
        msg = f"there is no category {request.path_id}; it may have been deleted"
        raise NotFound(msg) from None


# The field for the category of a pet: one of a list, or the name of another one


async def with_category(
    request: PageRequest, operation_id: str, body: dict[str, Any]
) -> dict[str, Any]:
    """Return a body with the id of the chosen category, which it may add, or why it has none."""
    if _NAME not in body:
        return body
    text, added = body[_NAME], added_category(request)
    if added:
        found = await _category_named(request, added)
        if found is None:
            request.decoded(operation_id, body | {_NAME: 0})  # else no category is added either
            try:
                found = await _add_category(request, added)
            except InvalidBody as error:
                return body | {_NAME: InvalidBody(_ADDED + error.message.removeprefix("name"))}
        return body | {_NAME: found}
    if text == _NEW:
        return body | {_NAME: InvalidBody(f"{_ADDED}: expected the name of the new category")}
    number = _typed_number(text)
    is_back = number is not None and request.form.text("undo")
    if not is_back and not await request.category_names([] if number is None else [number]):
        short = text if len(text) <= _MAX_NAME else f"{text[: _MAX_NAME - 1]}…"
        unknown = UnknownCategory(f"{_NAME}: there is no category “{isolated(short)}”")
        return body | {_NAME: unknown if text else InvalidBody(f"{_NAME}: choose a category")}
    return body | {_NAME: number}


def _typed_number(text: str) -> int | None:
    number = integer_in(text)
    return number if number is not None and abs(number) <= INT64_MAX else None


def added_category(request: PageRequest) -> str:
    return request.form.line(_ADDED) if request.form.line(_NAME) == _NEW else ""


async def _category_named(request: PageRequest, name: str) -> int | None:
    try:
        query = {"limit": 1, "name": name}
        found = (await request.execute("listCategories", query=query)).value
    except InvalidParameter:  # no name is like that
        return None
    same = (each.id for each in found if name_key(each.name) == name_key(name))
    return next(same, None)


async def _add_category(request: PageRequest, name: str) -> int | None:
    """Return the id of a new category, or of one that was just added."""
    try:
        created = await request.execute("createCategory", {"name": name}, if_match="")
    except CategoryNameTaken:
        return await _category_named(request, name)
    category_id: int = created.value.id
    return category_id


async def first_categories(request: PageRequest) -> dict[int, str]:
    """Return as many categories as a list on a page has, by name."""
    names, cursor = dict[int, str](), ""
    for _ in range(_PAGES_LISTED):
        query = {"limit": _ON_A_PAGE, "cursor": cursor or None}
        found = await request.execute("listCategories", query=query)
        names |= {each.id: each.name for each in found.value}
        cursor = found.next
        if not cursor:
            break
    return dict(sorted(names.items(), key=lambda each: name_key(each[1])))


async def category_form(request: PageRequest, form: ShownForm, any_: str = "") -> ShownForm:
    """Return a form with a list of categories: the first ones, those it has, and a new one."""
    names = await first_categories(request)
    text, differences = form.typed[_NAME], [*form.differences]
    texts = {text, *(each for one in differences for each in (one.opened, one.now, one.typed))}
    named = {number for each in texts if each and (number := _typed_number(each)) is not None}
    names |= await request.category_names(named - names.keys())
    listed = sorted(names.items(), key=lambda each: name_key(each[1]))
    options = {str(number): name for number, name in listed}
    differences = [
        each
        if each.name != _NAME
        else each._replace(
            opened=options.get(each.opened, each.opened),
            now=options.get(each.now, each.now),
            typed=each.typed and options.get(each.typed, each.typed),
        )
        for each in differences
    ]
    if any_ or not text:
        options = {"": any_ or "Choose…", **options}
    may_add = not any_ and request.may("createCategory")
    if may_add:
        options[_NEW] = "New category…"
    options.setdefault(text, f"{text}, which is no category")
    fields = [choice(_NAME, "Category", *options.items())]
    if may_add:
        fields.append(_NEW_NAME)
    if form.problem:
        form = form._replace(problem=form.problem.changed(_ADDED, label=_NEW_NAME.label))
    return form._replace(
        fields=[one for each in form.fields for one in (fields if each.name == _NAME else [each])],
        typed={**form.typed, _ADDED: added_category(request)},
        differences=differences,
    )


PAGES = (
    ConsolePage("GET", "/categories", _list, "listCategories", _list),
    ConsolePage("POST", "/categories", _create, "createCategory", _list),
    ConsolePage("GET", "/categories/{categoryId}", _show, "getCategory"),
    ConsolePage("POST", "/categories/{categoryId}", _update, "updateCategory", _show),
    ConsolePage("POST", "/categories/{categoryId}/delete", _delete, "deleteCategory", _show),
)
