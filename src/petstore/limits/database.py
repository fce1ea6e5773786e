"""The states of the rate limiter, and the requests of each key and day, in the database."""

import asyncio
import logging
from collections.abc import Iterable, Sequence
from itertools import islice
from operator import itemgetter

from msgspec.structs import astuple, replace

from petstore.databases.contract import Statement, Store, Unit, upsert
from petstore.limits.decide import NEVER, State

# All but the last, the latest unban: the row of the key has that.
_FIELDS = State.__struct_fields__[:-1]
_COLUMNS = ", ".join(_FIELDS)
# Another process may have saved a newer state of the key, or seen more of the day. The state used
# later is the newer one, unless a clock was set back since: each request uses more of the day, and
# the day is never further ahead than tomorrow.
_NEWER = f"""(key_id) DO UPDATE
  SET ({_COLUMNS}) = ({", ".join(f"excluded.{name}" for name in _FIELDS)})
  WHERE
    (excluded.used_at, excluded.day_used, excluded.banned_at)
      >= (rate_limits.used_at, rate_limits.day_used, rate_limits.banned_at)
    OR (excluded.day, excluded.day_used) > (rate_limits.day, rate_limits.day_used)
    OR excluded.day + 1 < rate_limits.day"""  # noqa: S608 - only names
# More of them at once would delay requests: on SQLite the event loop makes the change.
_STATES_AT_ONCE = 250
_LOG = logging.getLogger(__name__)
_MORE = """(key_id, day) DO UPDATE SET requests = excluded.requests
  WHERE excluded.requests > usage.requests"""


class StoredRateLimits:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._refused: set[int] = set()  # keys that the log names already

    async def load(self, key_id: int) -> State | None:
        rows = await self._store.read(
            Statement(
                f"SELECT {_COLUMNS} FROM rate_limits WHERE key_id = ?1",  # noqa: S608 - only names
                (key_id,),
                name="select_rate_limit",
            )
        )
        if not rows:
            return None
        state = State(*rows[0])
        # It already knows each unban that is older than its ban.
        return replace(state, unbanned_at=max(NEVER, state.banned_at - 1))

    async def save(self, states: Iterable[tuple[int, State]]) -> None:
        remaining = iter(sorted(states, key=itemgetter(0)))  # neighbours share a page of the file
        while batch := list(islice(remaining, _STATES_AT_ONCE)):
            try:
                await self._store.write(_save(batch))
            except Exception:
                if not await self._save_each(batch):
                    raise

    async def _save_each(self, batch: Sequence[tuple[int, State]]) -> bool:
        """Save states one by one: one that the database refuses must not hold up the others.

        If it takes none of them, the database is at fault: return False, to save all later.
        """
        saves = (self._store.write(_save([each])) for each in batch)
        results = await asyncio.gather(*saves, return_exceptions=True)
        errors = [(key_id, x) for (key_id, _), x in zip(batch, results, strict=True) if x]
        if len(errors) == len(batch):
            return False
        for key_id, error in errors:
            if key_id not in self._refused:
                self._refused.add(key_id)
                count = len(self._refused)
                _LOG.error("cannot save the limits of key %d, %d so far: %s", key_id, count, error)
        return True


def _row(state: State) -> tuple[int, ...]:
    """Return the row of a state. Its ban is later than any unban before, whatever the clocks."""
    if state.banned_at != NEVER:
        state = replace(state, banned_at=max(state.banned_at, state.unbanned_at + 1))
    return astuple(state)[:-1]


def _save(states: Sequence[tuple[int, State]]) -> Unit[None]:
    rows = [(key_id, *_row(state)) for key_id, state in states]
    yield from upsert("rate_limits", ("key_id", *_FIELDS), rows, _NEWER)
    used = [(key_id, state.day, state.day_used) for key_id, state in states if state.day_used]
    yield from upsert("usage", ("key_id", "day", "requests"), used, _MORE)
