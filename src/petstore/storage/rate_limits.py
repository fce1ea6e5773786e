"""What the limiter remembers, in SQL, and the requests of each key and day."""

from collections.abc import Iterable, Sequence
from itertools import chain, count

import msgspec

from petstore.rate_limits.contract import State
from petstore.storage.contract import Statement, Store, Unit

_FIELDS = State.__struct_fields__
_COLUMNS = ", ".join(_FIELDS)
_ROWS_AT_ONCE = 50


class StoredRateLimits:
    """The states of the limiter in the database of the service."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def load(self, key_id: int) -> State | None:
        """Return the saved state of a key.

        Raises:
            Unavailable: the database is out of reach.
        """
        rows = await self._store.read(
            Statement(f"SELECT {_COLUMNS} FROM rate_limits WHERE key_id = ?1", (key_id,))  # noqa: S608
        )
        return State(*rows[0]) if rows else None

    async def save(self, states: Iterable[tuple[int, State]]) -> None:
        """Save the states of many keys, and with each its requests of the day.

        Raises:
            Unavailable: the database is out of reach; nothing was saved.
        """
        await self._store.write(_save(states))


def select_usage(key_id: int, since_day: int) -> Statement:
    """Return the SELECT of (day, requests) from the day number ``since_day`` on, by day."""
    return Statement(
        "SELECT day, requests FROM usage WHERE key_id = ?1 AND day >= ?2 ORDER BY day",
        (key_id, since_day),
    )


def _save(states: Iterable[tuple[int, State]]) -> Unit[None]:
    latest: dict[int, State] = {}
    usage: dict[tuple[int, int], int] = {}
    for key_id, state in states:
        latest[key_id] = state
        if state.day_used:
            usage[key_id, state.day] = state.day_used
    # In order of the keys, so that processes that save at once wait for, not on, each other.
    rows = [(key_id, *msgspec.structs.astuple(state)) for key_id, state in sorted(latest.items())]
    updates = ", ".join(f"{name} = excluded.{name}" for name in _FIELDS)
    yield from _upsert("rate_limits", ("key_id", *_FIELDS), ("key_id",), updates, rows)
    counts = [(key_id, day, requests) for (key_id, day), requests in sorted(usage.items())]
    # Another process may have seen more of the day.
    more = "requests = CASE WHEN excluded.requests > usage.requests"
    more += " THEN excluded.requests ELSE usage.requests END"
    yield from _upsert("usage", ("key_id", "day", "requests"), ("key_id", "day"), more, counts)


def _upsert(
    table: str,
    columns: tuple[str, ...],
    key: tuple[str, ...],
    updates: str,
    rows: Sequence[tuple[int, ...]],
) -> Unit[None]:
    """Insert ``rows``, or update those that are there, many at a time."""
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        batch = rows[start : start + _ROWS_AT_ONCE]
        number = count(1)
        tuples = ", ".join(f"({', '.join(f'?{next(number)}' for _ in columns)})" for _ in batch)
        yield Statement(
            f"INSERT INTO {table} ({', '.join(columns)}) VALUES {tuples}"  # noqa: S608 - only names
            f" ON CONFLICT ({', '.join(key)}) DO UPDATE SET {updates}",
            tuple(chain.from_iterable(batch)),
        )
