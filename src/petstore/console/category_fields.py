"""The field of a category: a person types or picks a name, or types a number.

The interface has no categories by name, so these read the store, with the scope of its list.
"""

from collections.abc import Collection, Mapping

from petstore.console.forms import line, whole_number
from petstore.console.page import Visit
from petstore.databases.contract import Reader
from petstore.errors import UnknownCategory
from petstore.store.categories import first_category_names, ids_of_categories, names_of_categories

_SUGGESTED = 100
_SCOPED_AS = "listCategories"


async def category_names(visit: Visit, ids: Collection[int]) -> dict[int, str]:
    """Return the names of the registered ones among the categories ``ids``."""
    return await names_of_categories(await _reader(visit), ids) if visit.may(_SCOPED_AS) else {}


async def suggested_names(visit: Visit) -> list[str]:
    """Return the names that the field suggests."""
    if not visit.may(_SCOPED_AS):
        return []
    return await first_category_names(await _reader(visit), _SUGGESTED)


def category_text(category_id: int, names: Mapping[int, str]) -> str:
    """Return what the field shows of a category: a text that means this category and no other."""
    name = names.get(category_id, "")
    is_clear = name and line(name) == name and whole_number(name) is None
    return name if is_clear else str(category_id)


async def category_id_of(visit: Visit, text: str) -> int:
    """Return the category that a person typed.

    Raises:
        UnknownCategory: it is not a number, and no category has this name.
    """
    number = whole_number(text)
    if number is not None:
        return number
    category_id = (await _ids(visit, text)).get(text)
    if category_id is None:
        msg = (
            f"categoryId: no category has the name {text!r}; add it first, or type a number"
            if text
            else "categoryId: expected the name of a category, or a number"
        )
        raise UnknownCategory(msg)
    return category_id


async def _ids(visit: Visit, name: str) -> dict[str, int]:
    return await ids_of_categories(await _reader(visit), [name]) if visit.may(_SCOPED_AS) else {}


async def _reader(visit: Visit) -> Reader:
    return await visit.services.readers.for_key(visit.key.id)
