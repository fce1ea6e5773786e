"""What the limiter remembers, in SQL, and the requests of each key and day."""

from collections.abc import Iterable, Sequence
from itertools import chain, count

from msgspec.structs import astuple, replace

from petstore.clock import Milliseconds
from petstore.databases.contract import Row, Statement, Store, Unit
from petstore.rate_limits.contract import NEVER, State

# All but the last, the unbans that was heeded: the key has it too.
_FIELDS = State.__struct_fields__[:-1]
_COLUMNS = ", ".join(_FIELDS)
_ROWS_AT_ONCE = 50
# Another process may have saved a newer state of the key, or have seen more of the day. Its state
# is newer if it was used later, unless by a clock that was set back since: with every request more
# of the day is used, and the day is never further ahead than tomorrow.
_NEWER = """
    (excluded.used_at, excluded.day_used, excluded.banned_at)
      >= (rate_limits.used_at, rate_limits.day_used, rate_limits.banned_at)
    OR (excluded.day, excluded.day_used) > (rate_limits.day, rate_limits.day_used)
    OR excluded.day + 1 < rate_limits.day"""
_MORE = "excluded.requests > usage.requests"


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
            Statement(
                f"SELECT {_COLUMNS} FROM rate_limits WHERE key_id = ?1",  # noqa: S608 - only names
                (key_id,),
                name="select_rate_limit",
            )
        )
        return _state(rows[0]) if rows else None

    async def save(self, states: Iterable[tuple[int, State]]) -> None:
        """Save the states of many keys, and with each its requests of the day.

        One that is older than what is saved already is not: other processes save too.

        Raises:
            Unavailable: the database is out of reach; nothing was saved.
        """
        await self._store.write(_save(states))

    async def unbans(self, key_ids: Iterable[int]) -> dict[int, Milliseconds]:
        """Return when each of these keys was unbanned last, of those that ever were.

        Raises:
            Unavailable: the database is out of reach.
        """
        ids = tuple(key_ids)
        places = ", ".join(f"?{n}" for n in range(1, len(ids) + 1))
        rows = await self._store.read(
            Statement(
                f"SELECT id, pardoned_at FROM api_keys WHERE id IN ({places})"  # noqa: S608 - places
                " AND pardoned_at IS NOT NULL",
                ids,
                name="select_unbans",
            )
        )
        return dict(rows)


def select_usage(key_id: int, since_day: int) -> Statement:
    """Return the SELECT of (day, requests) from the day number ``since_day`` on, by day."""
    return Statement(
        "SELECT day, requests FROM usage WHERE key_id = ?1 AND day >= ?2 ORDER BY day",
        (key_id, since_day),
        name="select_usage",
    )


def _state(row: Row) -> State:
    """Return the state in a row; it has heeded every unbans that is older than its ban."""
    state = State(*row)
    return replace(state, unbanned_at=max(NEVER, state.banned_at - 1))


def _row(state: State) -> tuple[int, ...]:
    """Return the row of a state. Its ban is later than the unbans heeded before, by any clock."""
    if state.banned_at != NEVER:
        state = replace(state, banned_at=max(state.banned_at, state.unbanned_at + 1))
    return astuple(state)[:-1]


def _save(states: Iterable[tuple[int, State]]) -> Unit[None]:
    latest: dict[int, State] = {}
    usage: dict[tuple[int, int], int] = {}
    for key_id, state in states:
        latest[key_id] = state
        if state.day_used:
            usage[key_id, state.day] = state.day_used
    # In order of the keys, so that processes that save at once wait for, not on, each other.
    rows = [(key_id, *_row(state)) for key_id, state in sorted(latest.items())]
    yield from _upsert("rate_limits", ("key_id",), _FIELDS, _NEWER, rows)
    counts = [(key_id, day, requests) for (key_id, day), requests in sorted(usage.items())]
    yield from _upsert("usage", ("key_id", "day"), ("requests",), _MORE, counts)


def _upsert(
    table: str,
    key: tuple[str, ...],
    values: tuple[str, ...],
    condition: str,
    rows: Sequence[tuple[int, ...]],
) -> Unit[None]:
    """Insert ``rows``, or on ``condition`` update those that are there, many at a time."""
    columns = (*key, *values)
    updates = ", ".join(f"{name} = excluded.{name}" for name in values)
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        batch = rows[start : start + _ROWS_AT_ONCE]
        number = count(1)
        tuples = ", ".join(f"({', '.join(f'?{next(number)}' for _ in columns)})" for _ in batch)
        yield Statement(
            f"INSERT INTO {table} ({', '.join(columns)}) VALUES {tuples}"  # noqa: S608 - only names
            f" ON CONFLICT ({', '.join(key)}) DO UPDATE SET {updates} WHERE {condition}",
            tuple(chain.from_iterable(batch)),
            name=f"upsert_{table}",
        )
