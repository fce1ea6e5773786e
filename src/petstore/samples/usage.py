"""The usage of the key of the demo store: what its web site requested in the last 30 days."""

from collections.abc import Iterable, Sequence
from random import Random

from petstore.clock import DAY, HOUR, Milliseconds, utc
from petstore.databases.contract import Row, Unit
from petstore.databases.schema import TABLES_BY_NAME
from petstore.databases.upserts import upsert
from petstore.usage.counter import first_day, first_hour, text_of

_WEEKDAYS = (1400, 1350, 1500, 1600, 2100, 2900, 2200)
_IN_A_THOUSAND = {200: 843, 201: 31, 304: 97, 404: 21, 409: 8}
_REFUSED = ("listPets", 212)
_FAILED = 38
_OLD_PROGRAM = (b"shop-window/1.4", "a5c1e2d09b7f4e638d1c0fa2b3e47d65")


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
        (day, status, count * share // 1000)
        for day, count in requests.items()
        for status, share in _IN_A_THOUSAND.items()
    ]
    refused_on, (operation, refused) = today - 3, _REFUSED
    responses += [(refused_on, 429, refused), (today - 12, 503, _FAILED)]
    counts: list[Row] = [
        ("response", key_id, str(status), first_hour(day), count, "")
        for day, status, count in responses
    ]
    counts.append(("refused", key_id, operation, first_hour(refused_on) + 11, refused, ""))
    for day, count in requests.items():
        latest = text_of((day * DAY + 15 * HOUR, *_OLD_PROGRAM))
        counts.append(("deprecated", key_id, "getPet", first_hour(day), count // 40, latest))
    yield from _insert("counts", ["count", "latest"], counts)


def _insert(table: str, counts: Sequence[str], rows: Iterable[Row]) -> Unit[None]:
    key = TABLES_BY_NAME[table].key
    yield from upsert(table, (*key, *counts), rows, f"({', '.join(key)}) DO NOTHING")
