"""What keys have used: one of them, or the list of all, searched by name and sorted.

All of it comes from what is saved, at most half a second old, so looking changes nothing: a key
that somebody looks at was not used.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias, get_args

from petstore.clock import DAY, MINUTE, Milliseconds
from petstore.databases.contract import Reader, Row, Statement, placeholder_list
from petstore.databases.pages import read_page
from petstore.databases.planner import looked_up
from petstore.domain.cursors import BY_NAME
from petstore.domain.names import MAX_SEARCHED, name_key, search_key
from petstore.domain.words import MatchPosition, first_word
from petstore.keys.model import Environment
from petstore.keys.status import STORED_COLUMNS, Key, stored_key
from petstore.time_slices import TimeSlices

KeySort: TypeAlias = Literal["id", "-id", "name", "-name", "used", "-used", "today", "-today"]
"""By creation, name, last use or the requests of today; with a minus in descending order."""

KEY_SORTS: tuple[KeySort, ...] = get_args(KeySort)

USE_COLUMNS = ("r.minute_started", "r.minute_used", "r.day", "r.day_used")
"""The columns of the use of a key, from ``rate_limits r``."""

_LIMITS = looked_up("LEFT JOIN", "rate_limits", "r", "key_id", "k.id")
_SELECT = f"SELECT {', '.join((*STORED_COLUMNS, *USE_COLUMNS))} FROM api_keys k {_LIMITS}"  # noqa: S608 - only names
# As narrow as can be: a search and most orders read it of every key.
_SELECT_OUTLINES = (
    "SELECT k.id, k.name, k.seen_at, r.used_at, r.day, r.day_used"  # noqa: S608 - only names
    f" FROM (SELECT * FROM api_keys WHERE role IS NULL) k {_LIMITS}"
)
_READ_AT_ONCE = 500


class KeyUse(NamedTuple):
    """A key, and the requests of its minute and its day."""

    key: Key
    minute: int = 0
    day: int = 0


class KeyPosition(NamedTuple):
    """A position in the list: just after the key with this text, which sorts it, and this id."""

    text: str
    id: int

    @classmethod
    def before(cls, cursor: str) -> "KeyPosition":
        """Return the position in a cursor.

        Raises:
            ValueError: it is none.
        """
        position = BY_NAME.decode(cursor)
        return cls(position.name, position.id)

    @property
    def cursor(self) -> str:
        """The cursor of the list that goes on here."""
        return BY_NAME.encode(MatchPosition(first_word(self.text), self.text, self.id))


class KeysWanted(NamedTuple):
    """Which keys of an environment a page of the list shows.

    These are those with every one of the ``words`` in their name, or with their number, in the
    order ``sort`` and ``after`` a position in it.
    """

    environment: Environment
    words: str = ""
    sort: KeySort = "id"
    after: KeyPosition | None = None


class KeysFound(NamedTuple):
    """A page of the list, and the position that the next one starts after."""

    uses: Sequence[KeyUse]
    next_after: KeyPosition | None


class _Outline(NamedTuple):
    """What a key is searched and sorted by."""

    id: int
    name: str
    seen_at: Milliseconds | None
    used_at: Milliseconds | None
    day: int | None
    day_used: int | None


async def find_use(store: Reader, key: Key, now: Milliseconds) -> KeyUse:
    """Return what a key has used."""
    return (await _find_uses(store, [key.id], now))[key.id]._replace(key=key)


async def find_keys(store: Reader, wanted: KeysWanted, limit: int, now: Milliseconds) -> KeysFound:
    """Return the first ``limit`` keys that are ``wanted``.

    In the order of their creation it reads until it has found enough of them. In any other order it
    reads the outlines of all keys of the environment, in slices, and keeps those of the page.
    """
    is_descending, by = wanted.sort.startswith("-"), wanted.sort.removeprefix("-")
    words, slices = name_key(wanted.words[:MAX_SEARCHED]).split(), TimeSlices()
    await slices.begin()
    best: list[KeyPosition] = []
    async for outlines in _outlines(store, wanted):
        found = (_position(each, by, now) for each in outlines if _matches(each, words))
        beyond = [position for position in found if _is_beyond(position, wanted)]
        best = sorted([*best, *beyond], reverse=is_descending)[: limit + 1]
        if by == "id" and len(best) > limit:
            break
        await slices.rest()
    on_page = best[:limit]
    uses = await _find_uses(store, [each.id for each in on_page], now)
    return KeysFound(
        [uses[each.id] for each in on_page], on_page[-1] if len(best) > limit else None
    )


def used(row: Row, now: Milliseconds) -> tuple[int, int]:
    """Return the requests of the minute and of the day at ``now``, from ``USE_COLUMNS``."""
    minute_started, minute_used, day, day_used = row
    if day is None:  # never used
        return 0, 0
    in_minute = minute_used if now < minute_started + MINUTE else 0
    return in_minute, day_used if now < (day + 1) * DAY else 0


async def _outlines(store: Reader, wanted: KeysWanted) -> AsyncIterator[list[_Outline]]:
    """Yield the outlines of keys by id, or by descending id if the list is; perhaps all of them."""
    after, newest_first = None, wanted.sort == "-id"
    if wanted.after is not None and wanted.sort in ("id", "-id"):
        after = wanted.after.id
    while True:
        page = await read_page(
            *(store, "select_key_outlines", _SELECT_OUTLINES),
            {"environment": wanted.environment},
            *(after, _READ_AT_ONCE, _Outline._make),
            newest_first=newest_first,
        )
        yield page.items
        after = page.next_after
        if after is None:
            return


def _matches(outline: _Outline, words: Sequence[str]) -> bool:
    if not words or words == [str(outline.id)]:
        return True
    name = name_key(outline.name)
    return all(word in name for word in words)


def _position(outline: _Outline, by: str, now: Milliseconds) -> KeyPosition:
    """Return where a key is in the list: by a text that sorts as its value does, and by its id."""
    if by == "name":
        return KeyPosition(search_key(outline.name), outline.id)
    value = outline.id
    if by == "used":
        value = max(outline.used_at or 0, outline.seen_at or 0)
    elif by == "today":
        _, value = used((0, 0, outline.day, outline.day_used), now)
    return KeyPosition(f"{value:019d}", outline.id)


def _is_beyond(position: KeyPosition, wanted: KeysWanted) -> bool:
    if wanted.after is None:
        return True
    return position < wanted.after if wanted.sort.startswith("-") else position > wanted.after


async def _find_uses(
    store: Reader, key_ids: Sequence[int], now: Milliseconds
) -> Mapping[int, KeyUse]:
    """Return what these keys have used, by their ids."""
    sql = f"{_SELECT} WHERE k.id IN ({placeholder_list(1, key_ids)})"
    rows = await store.read(Statement(sql, tuple(key_ids), name="select_key_uses"))
    return {row[0]: use_of(row, now) for row in rows}


def use_of(row: Row, now: Milliseconds) -> KeyUse:
    """Return the use of a key in a row of ``STORED_COLUMNS`` and ``USE_COLUMNS``."""
    return KeyUse(stored_key(row).shown(now), *used(row[len(STORED_COLUMNS) :], now))
