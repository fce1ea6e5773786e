"""The usage of the key of the demo store: what its web site requested in the last 30 days."""

from collections.abc import Iterable, Sequence
from random import Random

from petstore.clock import DAY, HOUR, Milliseconds, utc
from petstore.databases.contract import Row, Unit
from petstore.databases.schema import TABLES_BY_NAME
from petstore.databases.upserts import upsert
from petstore.usage.counts import first_day

_WEEKDAYS = (1400, 1350, 1500, 1600, 2100, 2900, 2200)
_IN_A_THOUSAND = {200: 843, 201: 31, 304: 97, 404: 21, 409: 8}
_REFUSED = ("listPets", 212)
_FAILED = 38
_OLD_PROGRAM = ("shop-window/1.4", "a5c1e2d09b7f4e638d1c0fa2b3e47d65")


def record_usage(key_id: int, now: Milliseconds) -> Unit[None]:
    """Count the requests of a key on the days before today: most succeed, some got 429."""
    chance = Random("petstore")  # noqa: S311 - no secret
    today = now // DAY
    requests = {
        day: round(_WEEKDAYS[utc(day * DAY).weekday()] * chance.uniform(0.85, 1.15))
        for day in range(first_day(now), today)
    }
    yield from _insert("usage", ["requests"], ((key_id, *each) for each in requests.items()))
    responses = [
        (key_id, day, status, count * share // 1000)
        for day, count in requests.items()
        for status, share in _IN_A_THOUSAND.items()
    ]
    refused_on, (operation, refused) = today - 3, _REFUSED
    responses += [(key_id, refused_on, 429, refused), (key_id, today - 12, 503, _FAILED)]
    yield from _insert("responses", ["requests"], responses)
    hour = (refused_on * DAY + 11 * HOUR) // HOUR
    yield from _insert("refused_requests", ["requests"], [(key_id, hour, operation, refused)])
    calls = [
        (key_id, "getPet", day, count // 40, day * DAY + 15 * HOUR, *_OLD_PROGRAM)
        for day, count in requests.items()
    ]
    counts = ["calls", "last_called_at", "last_user_agent", "last_request_id"]
    yield from _insert("deprecated_calls", counts, calls)


def _insert(table: str, counts: Sequence[str], rows: Iterable[Row]) -> Unit[None]:
    key = TABLES_BY_NAME[table].key
    yield from upsert(table, (*key, *counts), rows, f"({', '.join(key)}) DO NOTHING")
