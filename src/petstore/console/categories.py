"""The category of an animal in forms and imports: one of a list, or a name that is typed.

A person picks or types a name, or types a number. The interface has no categories by name, so this
reads the store. Names are shown with the scope of the list of categories.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from difflib import SequenceMatcher
from heapq import nlargest
from typing import Any
from unicodedata import normalize

from petstore.categories.store import (
    first_category_names,
    ids_of_categories,
    names_of_categories,
)
from petstore.console.fields import Field, ShownForm, choice
from petstore.console.forms import INSTEAD, Problem, line, problem_of
from petstore.console.page import PageRequest
from petstore.console.templates import isolated
from petstore.databases.contract import Reader
from petstore.domain.decoding import integer_in
from petstore.domain.fields import INT64_MAX
from petstore.domain.names import MAX_SEARCHED, name_key
from petstore.domain.words import SearchText, words_of
from petstore.errors import CategoryNameTaken, InvalidBody, UnknownCategory
from petstore.time_slices import TimeSlices

_LISTED = 30
_SUGGESTED = 100
_SEARCHED = 5000
# How many characters of names, decomposed, one request reads: a ligature may become 18 of them.
_READ = 200_000
_MEANT = 3
# To compare two names takes time with the product of their lengths.
_COMPARED, _LONGEST, _ALIKE = 20, 40, 0.65
# So many names that are typed wrongly in one form get suggestions: each takes some 50 ms.
_SUGGESTED_FOR = 5
_MAX_NAME = 100
_NAME = "categoryId"
_ADDED = "addedCategory"
_REQUIRED = {"aria-required": "true"}
# What the list has for a new category.
_NEW = "+"
_NEW_NAME = Field(
    *(_ADDED, "New category"),
    caption="What is it called?",
    attributes={"maxlength": _MAX_NAME},
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

    A person has typed it. No animal gets a category that is not registered, unless an undo gives it
    back. If the form adds a category, it is there now, unless something else is wrong with the
    body.
    """
    if _NAME not in body:
        return body
    text, added = body[_NAME], added_category(visit)
    if text == _NEW and not added:
        return body | {_NAME: InvalidBody(f"{_ADDED}: expected the name of the new category")}
    category_id = await _id_of(visit, added or text)
    if category_id is None and added and _is_valid(visit, operation_id, body | {_NAME: 0}):
        try:
            category_id = await _add(visit, added)
        except InvalidBody as error:
            return body | {_NAME: InvalidBody(_ADDED + error.message.removeprefix("name"))}
    return body | {_NAME: _unknown(visit, text) if category_id is None else category_id}


async def with_category_filter(visit: PageRequest, body: dict[str, Any]) -> dict[str, Any]:
    """Return filters that a person typed with the id of the category, or with why it has none.

    An animal may have a number that is not registered.
    """
    text = body.get(_NAME)
    if text is None:
        return body
    category_id = integer_in(text)
    if category_id is None:
        category_id = await _id_of(visit, text)
    return body | {_NAME: _unknown(visit, text) if category_id is None else category_id}


def added_category(visit: PageRequest) -> str:
    """Return the name of the category that a form adds for an animal, empty if it adds none."""
    added = visit.form.line(_ADDED)
    is_wanted = visit.form.line(_NAME) in (_NEW, added) and visit.may("createCategory")
    return added if is_wanted else ""


async def chosen_categories(
    visit: PageRequest, chosen: Mapping[str, str], new: Mapping[str, str]
) -> dict[str, int] | list[Problem]:
    """Return the ids of the categories that a person ``chosen`` or typed in fields, and added.

    If some are not registered, return what is wrong with their fields instead. The first ones have
    buttons for those that may be meant. Then none of the ``new`` ones is added.

    Raises:
        InvalidBody: no category can have the name of a new one.
    """
    ids: dict[str, int] = {}
    problems: list[Problem] = []
    for field, text in chosen.items():
        try:
            ids[field] = await _chosen_id(visit, text)
        except (InvalidBody, UnknownCategory) as error:
            problem = problem_of(error)._replace(field=field)
            if len(problems) < _SUGGESTED_FOR:
                problem = await _with_suggestions(visit, problem, text)
            problems.append(problem)
    if problems:
        return problems
    return ids | {field: await _chosen_id(visit, name, is_new=True) for field, name in new.items()}


async def _chosen_id(visit: PageRequest, text: str, *, is_new: bool = False) -> int:
    category_id = await (_add(visit, text) if is_new else _id_of(visit, text))
    if category_id is None:
        raise _unknown(visit, text)
    return category_id


async def _id_of(visit: PageRequest, text: str) -> int | None:
    """Return the id of the registered category that a text means: a number is never a name."""
    store, number = visit.services.store, integer_in(text)
    if number is None:
        may_see = visit.may("listCategories")
        return (await ids_of_categories(store, [text])).get(text) if may_see else None
    if visit.form.text("undo"):
        return number
    is_possible = abs(number) <= INT64_MAX
    return number if is_possible and await names_of_categories(store, [number]) else None


def _is_valid(visit: PageRequest, operation_id: str, body: Mapping[str, Any]) -> bool:
    try:
        visit.decoded(operation_id, body)
    except InvalidBody:
        return False
    return True


async def _add(visit: PageRequest, name: str) -> int | None:
    """Return the id of a new category, or of the one that somebody else has just added.

    Raises:
        InvalidBody: no category can have this name.
    """
    try:
        created = await visit.execute("createCategory", {"name": name}, if_match="")
    except CategoryNameTaken:
        return await _id_of(visit, name)
    category_id: int = created.value.id
    return category_id


def _unknown(visit: PageRequest, text: str) -> InvalidBody | UnknownCategory:
    if not text:
        return InvalidBody(f"{_NAME}: choose a category")
    if not visit.may("listCategories") and integer_in(text) is None:
        return InvalidBody(f"{_NAME}: expected the number of a category")
    return UnknownCategory(f"{_NAME}: there is no category {_quoted(text)}")


def _quoted(text: str) -> str:
    short = text if len(text) <= _MAX_NAME else f"{text[: _MAX_NAME - 1]}…"
    return f"“{isolated(short)}”"


# What a form shows


async def category_form(visit: PageRequest, form: ShownForm, any_: str = "") -> ShownForm:
    """Return a form whose category is one of a list, or is typed if they are many.

    ``any_`` is what the list of a filter has for all categories. A form that adds or changes an
    animal has none, and may add a category.
    """
    if not visit.may("listCategories"):
        return form
    names = await first_category_names(visit.services.store, _SUGGESTED)
    may_add = not any_ and visit.may("createCategory")
    text, hint, added = form.typed[_NAME], "", added_category(visit) if may_add else ""
    if added and await _id_of(visit, added) is not None:
        text, hint = added, f"{isolated(added)} is a category now."  # what followed it has failed
    text = _text_in(names, text)
    is_known = text in ("", _NEW) or integer_in(text) is not None
    fields: tuple[Field, ...]
    if names and len(names) <= _LISTED and (is_known or text in _texts(names)):
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


def _texts(names: Mapping[int, str]) -> dict[str, str]:
    """Return the names of categories by their texts."""
    return {category_text(category_id, names): name for category_id, name in names.items()}


def _list_of(
    names: Mapping[int, str], text: str, any_: str, hint: str, *, may_add: bool
) -> tuple[Field, ...]:
    """Return the list to choose from, and the name of a new category if the list offers one."""
    options = _texts(names)
    if any_ or not text:
        options = {"": any_ or "Choose…", **options}
    options.setdefault(text, f"{text}, which is no category")  # but a number
    if not may_add:
        return (choice(_NAME, "Category", *options.items(), hint=hint),)
    listed = choice(_NAME, "Category", *(options | {_NEW: "New category…"}).items(), hint=hint)
    return listed, _NEW_NAME


def _typed_field(names: Mapping[int, str], hint: str, *, is_filter: bool) -> Field:
    """Return the field of a name, which suggests some while a person types."""
    if not names:
        hint = "There are no categories yet. Type the name of the first one."
    return Field(
        *(_NAME, "Category"),
        options=[(text, name) for text, name in _texts(names).items()],
        hint=hint or ("" if is_filter else "Any word of its name."),
        attributes={"data-suggest": "categories/names"} | ({} if is_filter else _REQUIRED),
    )


async def _with_ways(visit: PageRequest, form: ShownForm, text: str, *, may_add: bool) -> ShownForm:
    """Return a form that says what a person may mean who typed a name that no category has."""
    problem = form.problem and form.problem.about(_NAME)
    if not form.problem or not problem:
        return form
    meant = await _with_suggestions(visit, problem, text)
    ways = [*meant.ways]
    if may_add and len(text) <= _MAX_NAME:
        ways.append((_ADDED, text, f"Add {_quoted(text)} as a category"))
    return form._replace(problem=form.problem.changed(_NAME, text=meant.text, ways=ways))


async def _with_suggestions(visit: PageRequest, problem: Problem, typed: str) -> Problem:
    """Return what is wrong with a typed category, with buttons for those that may be meant.

    A number, and a person without the scope to list categories, get none.
    """
    if integer_in(typed) is not None or not visit.may("listCategories"):
        return problem
    names = await _nearest(await first_category_names(visit.services.store, _SEARCHED), typed)
    if not names:
        return problem
    ways = [
        (INSTEAD + problem.field, text, f"Use {isolated(name)}")
        for text, name in _texts(names).items()
    ]
    return problem._replace(text=f"{problem.text}. {_did_you_mean(names)}", ways=ways)


def _did_you_mean(names: Mapping[int, str]) -> str:
    """Return the question whether a person means one of these categories, empty without any."""
    said = " or ".join(isolated(name) for name in names.values())
    return f"Did you mean {said}?" if said else ""


# The names that a text may mean


async def listed_categories(
    visit: PageRequest, unknown: Sequence[str]
) -> list[tuple[dict[int, str], str]]:
    """Return the names of all categories by their ids, for each unknown name those like it first.

    With them is the question whether these are meant, empty for an empty name. There are none if
    they are too many for a list.
    """
    names: dict[int, str] = {}
    if visit.may("listCategories"):
        names = await first_category_names(visit.services.store, _LISTED + 1)
    if len(names) > _LISTED:
        names = {}
    nearest = [await _nearest(names, name) if name else {} for name in unknown]
    return [(near | names, _did_you_mean(near)) for near in nearest]


async def known_names(visit: PageRequest) -> list[str]:
    """Return the texts of the first categories, none without the scope to list them."""
    if not visit.may("listCategories"):
        return []
    return await suggested_names(visit.services.store, "")


async def suggested_names(reader: Reader, typed: str) -> list[str]:
    """Return the texts of the first categories with a word that begins with what was typed."""
    if not typed:
        return [*_texts(await first_category_names(reader, _SUGGESTED))]
    names = await first_category_names(reader, _SEARCHED)
    return [*_texts(await _with_word(names, typed, _SUGGESTED))]


async def _nearest(names: Mapping[int, str], typed: str) -> dict[int, str]:
    """Return those of the names that are most like a typed one, a few at most."""
    return await _with_word(names, typed, _MEANT) or await _alike(names, typed)


async def _with_word(names: Mapping[int, str], typed: str, limit: int) -> dict[int, str]:
    wanted = SearchText(words_of(typed[:MAX_SEARCHED]))
    found: dict[int, str] = {}
    async for category_id, words in _words_of_each(names):
        if wanted.place_in(words) is not None:
            found[category_id] = names[category_id]
            if len(found) == limit:
                break
    return found


async def _words_of_each(names: Mapping[int, str]) -> AsyncIterator[tuple[int, tuple[str, ...]]]:
    """Yield the words of the names, until that was enough for one request."""
    slices, left = TimeSlices(), _READ
    for category_id, name in names.items():
        await slices.rest()
        left -= len(normalize("NFKD", name))
        if left < 0:
            return
        yield category_id, words_of(name)


async def _alike(names: Mapping[int, str], typed: str) -> dict[int, str]:
    """Return the names that have most in common with a typed one, or have a word that has."""
    matcher, slices = SequenceMatcher(autojunk=False), TimeSlices()
    matcher.set_seq2(" ".join(words_of(typed[:_LONGEST]))[:_LONGEST])
    bounds: list[tuple[float, int, str]] = []
    async for category_id, words in _words_of_each(names):
        for part in {" ".join(words)[:_LONGEST], *(word[:_LONGEST] for word in words)}:
            matcher.set_seq1(part)
            if matcher.real_quick_ratio() >= _ALIKE and (most := matcher.quick_ratio()) >= _ALIKE:
                bounds.append((most, category_id, part))
    best: dict[int, float] = {}
    for _, category_id, part in nlargest(_COMPARED, bounds):
        await slices.rest()
        matcher.set_seq1(part)
        if (ratio := matcher.ratio()) >= _ALIKE:
            best[category_id] = max(ratio, best.get(category_id, 0))
    nearest = nlargest(_MEANT, best, key=best.__getitem__)
    return {category_id: names[category_id] for category_id in nearest}
