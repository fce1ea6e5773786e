"""The category of a pet in forms: one of a list, or a name that is typed.

A person picks or types a name, or types a number.
"""

from collections.abc import Mapping
from typing import Any

from petstore.console.forms import INSTEAD, Field, ShownForm, choice, line
from petstore.console.page import PageRequest
from petstore.console.templates import isolated
from petstore.domain.decoding import integer_in
from petstore.domain.fields import INT64_MAX
from petstore.domain.names import name_key
from petstore.errors import CategoryNameTaken, InvalidBody, InvalidParameter, UnknownCategory

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


def category_text(category_id: int, names: Mapping[int, str]) -> str:
    """Return what the field shows of a category: a text that means this category and no other."""
    name = names.get(category_id, "")
    is_clear = name and line(name) == name and integer_in(name) is None and name != _NEW
    return name if is_clear else str(category_id)


# What was typed


async def with_category(
    visit: PageRequest, operation_id: str, body: dict[str, Any]
) -> dict[str, Any]:
    """Return the body of an operation with the id of its category, or with why it has none.

    A person has typed it. No pet gets a category that is not registered, unless an undo gives it
    back. If the form adds a category, it is there now, unless something else is wrong with the
    body.
    """
    if _NAME not in body:
        return body
    text, added = body[_NAME], added_category(visit)
    if text == _NEW and not added:
        return body | {_NAME: InvalidBody(f"{_ADDED}: expected the name of the new category")}
    category_id = await category_id_of(visit, added or text)
    if category_id is None and added and _is_valid(visit, operation_id, body | {_NAME: 0}):
        try:
            category_id = await add_category(visit, added)
        except InvalidBody as error:
            return body | {_NAME: InvalidBody(_ADDED + error.message.removeprefix("name"))}
    return body | {_NAME: unknown_category(text) if category_id is None else category_id}


async def with_category_filter(visit: PageRequest, body: dict[str, Any]) -> dict[str, Any]:
    """Return filters that a person typed with the id of the category, or with why it has none.

    A pet may have a number that is not registered.
    """
    text = body.get(_NAME)
    if text is None:
        return body
    category_id = integer_in(text)
    if category_id is None:
        category_id = await category_id_of(visit, text)
    return body | {_NAME: unknown_category(text) if category_id is None else category_id}


def added_category(visit: PageRequest) -> str:
    added = visit.form.line(_ADDED)
    return added if visit.form.line(_NAME) in (_NEW, added) else ""


async def category_id_of(visit: PageRequest, text: str) -> int | None:
    """Return the id of the registered category that a text means: a number is never a name."""
    number = integer_in(text)
    if number is None:
        found = await categories_named(visit, text, 1) if text else {}
        same = (each for each, name in found.items() if name_key(name) == name_key(text))
        return next(same, None)
    if visit.form.text("undo"):
        return number
    is_known = abs(number) <= INT64_MAX and await visit.category_names([number])
    return number if is_known else None


async def categories_named(visit: PageRequest, typed: str, limit: int) -> dict[int, str]:
    query = {"limit": limit, "name": typed or None}
    try:
        found = (await visit.execute("listCategories", query=query)).value
    except InvalidParameter:  # no name is like that
        return {}
    return {each.id: each.name for each in sorted(found, key=lambda each: name_key(each.name))}


def _is_valid(visit: PageRequest, operation_id: str, body: Mapping[str, Any]) -> bool:
    try:
        visit.decoded(operation_id, body)
    except InvalidBody:
        return False
    return True


async def add_category(visit: PageRequest, name: str) -> int | None:
    """Return the id of a new category, or of the one that somebody else has just added."""
    try:
        created = await visit.execute("createCategory", {"name": name}, if_match="")
    except CategoryNameTaken:
        return await category_id_of(visit, name)
    category_id: int = created.value.id
    return category_id


def unknown_category(text: str) -> InvalidBody | UnknownCategory:
    if not text:
        return InvalidBody(f"{_NAME}: choose a category")
    return UnknownCategory(f"{_NAME}: there is no category {_quoted(text)}")


def _quoted(text: str) -> str:
    short = text if len(text) <= _MAX_NAME else f"{text[: _MAX_NAME - 1]}…"
    return f"“{isolated(short)}”"


# What a form shows


async def category_form(visit: PageRequest, form: ShownForm, any_: str = "") -> ShownForm:
    """Return a form whose category is one of a list, or is typed if they are many.

    ``any_`` is what the list of a filter has for all categories. A form that adds or changes a
    pet has none, and may add a category.
    """
    names = await categories_named(visit, "", _FIRST)
    may_add = not any_ and visit.may("createCategory")
    text, hint, added = form.typed[_NAME], "", added_category(visit) if may_add else ""
    if added and await category_id_of(visit, added) is not None:
        text, hint = added, f"{isolated(added)} is a category now."  # what followed it has failed
    text = _text_in(names, text)
    is_known = text in ("", _NEW) or integer_in(text) is not None
    fields: tuple[Field, ...]
    if names and len(names) <= _LISTED and (is_known or text in texts_of(names)):
        fields = _list_of(names, text, any_, hint, may_add=may_add)
    else:
        fields = (_typed_field(names, hint, is_filter=bool(any_)),)
        if not is_known:
            form = await _with_ways(visit, form, text, may_add=may_add)
    if form.problem:
        form = form._replace(problem=form.problem.changed(_ADDED, label=_NEW_NAME.label))
    typed = {**form.typed, _NAME: text, _ADDED: visit.form.line(_ADDED) if text == _NEW else ""}
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


async def _with_ways(visit: PageRequest, form: ShownForm, text: str, *, may_add: bool) -> ShownForm:
    problem = form.problem and form.problem.about(_NAME)
    if not form.problem or not problem:
        return form
    meant = texts_of(await categories_named(visit, text, _MEANT))
    ways = [(INSTEAD + _NAME, text, f"Use {isolated(name)}") for text, name in meant.items()]
    if may_add and len(text) <= _MAX_NAME:
        ways.append((_ADDED, text, f"Add {_quoted(text)} as a category"))
    names = " or ".join(isolated(name) for name in meant.values())
    told = f"{problem.text}. Did you mean {names}?" if names else problem.text
    return form._replace(problem=form.problem.changed(_NAME, text=told, ways=ways))
