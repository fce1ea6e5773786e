"""Structs as rows of a database."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from msgspec import UNSET, Struct, UnsetType

from petstore.domain.decoding import RowMapping
from petstore.domain.fields import Id, Int64, Moment

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
LATER = NOON.astimezone(timezone(timedelta(hours=1))) + timedelta(microseconds=5)


class Visit(Struct):
    id: Id
    began_at: Moment
    ended_at: Moment | UnsetType = UNSET
    planned_at: Moment | UnsetType = UNSET
    guests: Int64 | UnsetType = UNSET


VISITS = RowMapping(Visit, texts=["planned_at"], computed={"guests": "1 + 1"})
STORED = ("id", "began_at", "ended_at", "planned_at")


@pytest.mark.parametrize(
    ("visit", "row"),
    [
        (Visit(1, NOON, guests=2), (1, 1_796_126_400_000, None, None)),
        (
            Visit(1, NOON, NOON, LATER, 2),
            (1, 1_796_126_400_000, 1_796_126_400_000, "2026-12-01T13:00:00.000005+01:00"),
        ),
    ],
)
def test_a_struct_is_read_as_it_was_stored(visit: Visit, row: tuple[object, ...]) -> None:
    assert tuple(VISITS.values(visit, STORED)) == row
    read = VISITS.read((*row, 2))
    assert (read, str(read.planned_at)) == (visit, str(visit.planned_at))
