"""What the limiter remembers, in SQL, and the requests of each key and day."""

from collections.abc import Iterable

import msgspec

from petstore.rate_limits.contract import State
from petstore.storage.contract import Statement, Store, Unit

_FIELDS = State.__struct_fields__
_COLUMNS = ", ".join(_FIELDS)
_SAVE_STATE = (
    f"INSERT INTO rate_limits (key_id, {_COLUMNS})"  # noqa: S608 - only names
    f" VALUES (?1, {', '.join(f'?{n}' for n in range(2, len(_FIELDS) + 2))})"
    " ON CONFLICT (key_id) DO UPDATE SET "
    + ", ".join(f"{field} = excluded.{field}" for field in _FIELDS)
)
_SAVE_USAGE = (
    "INSERT INTO usage (key_id, day, requests) VALUES (?1, ?2, ?3)"
    " ON CONFLICT (key_id, day) DO UPDATE SET requests = excluded.requests"
)


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
    for key_id, state in states:
        yield Statement(_SAVE_STATE, (key_id, *msgspec.structs.astuple(state)))
        if state.day_used:
            yield Statement(_SAVE_USAGE, (key_id, state.day, state.day_used))
