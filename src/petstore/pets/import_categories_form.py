"""The categories of the rows of an import, of which some are not registered."""

from collections.abc import AsyncIterator, Mapping, Sequence
from difflib import SequenceMatcher
from heapq import nlargest
from unicodedata import normalize

from petstore.categories.store import first_category_names
from petstore.console.categories import add_category, category_id_of, texts_of, unknown_category
from petstore.console.forms import INSTEAD, Problem, problem_of
from petstore.console.page import PageRequest
from petstore.console.templates import isolated
from petstore.domain.decoding import integer_in
from petstore.domain.names import MAX_SEARCHED
from petstore.domain.words import SearchText, words_of
from petstore.errors import InvalidBody, UnknownCategory
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
    category_id = await (add_category(visit, text) if is_new else category_id_of(visit, text))
    if category_id is None:
        raise unknown_category(visit, text)
    return category_id


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
        for text, name in texts_of(names).items()
    ]
    return problem._replace(text=f"{problem.text}. {_did_you_mean(names)}", ways=ways)


def _did_you_mean(names: Mapping[int, str]) -> str:
    """Return the question whether a person means one of these categories, empty without any."""
    said = " or ".join(isolated(name) for name in names.values())
    return f"Did you mean {said}?" if said else ""


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
    return [*texts_of(await first_category_names(visit.services.store, _SUGGESTED))]


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
