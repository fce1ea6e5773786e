"""The pages of the stock: how many pets each category has; add, rename and delete categories."""

from collections.abc import Mapping
from typing import NamedTuple

from petstore.categories.model import Category
from petstore.console.forms import Field, FieldSet, ShownForm, isolated, optional
from petstore.console.history import deleted_page, history_of
from petstore.console.page import ConsolePage, Notice, PageRequest, Undo
from petstore.domain.decoding import integer_in
from petstore.domain.fields import INT64_MAX
from petstore.domain.names import name_key
from petstore.errors import InvalidParameter, NotFound
from petstore.http.messages import Response
from petstore.interface.operation import Result
from petstore.pets.model import Inventory, StatusCounts

_ON_A_PAGE = 100
_PAGES_LISTED = 10
_NONE = StatusCounts()
_FORM = FieldSet(
    Field("name", "Name", attributes={"aria-required": "true"}),
    Field("description", "Description", parse=optional, hint="May be empty"),
)
_NAME = "categoryId"


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


async def _list(request: PageRequest) -> Response:
    found = Result[list[Category]]([])
    if not isinstance(request.error, InvalidParameter):
        found = await request.list_page("listCategories", _ON_A_PAGE)
    return request.page(
        "stock.html",
        stock=await stock_of(request, {each.id: each for each in found.value}),
        cursor=found.next,
        form=_FORM.new(request.form, request.error),
    )


async def _create(request: PageRequest) -> Response:
    body = _FORM.body(_FORM.typed(request.form))
    created = await request.execute("createCategory", body)
    category: Category = created.value
    undo = Undo(f"/categories/{category.id}/delete", {"version": created.version})
    text = f"{isolated(category.name)} is now category {category.id}."
    return await request.redirect("/categories", Notice(text, undo))


async def _show(request: PageRequest) -> Response:
    history = await history_of(request, f"category/{request.path_id}")
    try:
        found = await request.execute("getCategory")
    except NotFound as gone:
        return deleted_page(request, history, gone, _FORM)
    now = _FORM.texts(found.value)
    form = _FORM.shown(now, found.version, request.form, request.error)
    return request.page("category.html", found=found, texts=now, form=form, history=history)


async def _update(request: PageRequest) -> Response:
    before, now = map(_FORM.texts, await request.change("Category", _FORM))
    return await request.tell_change(isolated(now["name"]), before, now)


async def _delete(request: PageRequest) -> Response:
    before = await request.execute("getCategory")
    category: Category = before.value
    await request.execute("deleteCategory")
    fields = {**_FORM.texts(category), "once": before.version}
    undo = Undo("/categories", fields, "Add it again, with a new number")
    notice = Notice(f"{isolated(category.name)} is deleted.", undo)
    return await request.redirect("/categories", notice)


# The field for the category of a pet


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
    return _by_name(names)


def _by_name(names: Mapping[int, str]) -> dict[int, str]:
    return dict(sorted(names.items(), key=lambda each: name_key(each[1])))


async def category_form(request: PageRequest, form: ShownForm, any_: str = "") -> ShownForm:
    """Return a form with a list of categories: the first ones, and those that it has."""
    names = await first_categories(request)
    text, differences = form.typed[_NAME], form.differences
    texts = {text, *(each for one in differences for each in (one.opened, one.now, one.typed))}
    numbers = {integer_in(each or "") for each in texts}
    named = {each for each in numbers if each is not None and abs(each) <= INT64_MAX}
    names = _by_name(names | await request.category_names(named - names.keys()))
    options = {str(number): name for number, name in names.items()}
    if any_ or not text:
        options = {"": any_ or "Choose…", **options}
    options.setdefault(text, f"{text}, which is no category")
    return form._replace(
        fields=[
            each._replace(control="choice", options=[*options.items()])
            if each.name == _NAME
            else each
            for each in form.fields
        ],
        differences=[
            each._replace(
                opened=options.get(each.opened, each.opened),
                now=options.get(each.now, each.now),
                typed=each.typed and options.get(each.typed, each.typed),
            )
            if each.name == _NAME
            else each
            for each in differences
        ],
    )


PAGES = (
    ConsolePage("GET", "/categories", _list, "listCategories", _list),
    ConsolePage("POST", "/categories", _create, "createCategory", _list),
    ConsolePage("GET", "/categories/{categoryId}", _show, "getCategory"),
    ConsolePage("POST", "/categories/{categoryId}", _update, "updateCategory", _show),
    ConsolePage("POST", "/categories/{categoryId}/delete", _delete, "deleteCategory", _show),
)
