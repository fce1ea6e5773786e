"""The days of a range: whole days of any time zone, however long they are."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo, reset_tzpath

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, UnsetType

from petstore.clock import utc
from petstore.domain.time_zones import zone_of
from petstore.errors import InvalidParameter
from petstore.sales.model import DayRange, SalesRow, day_range, totals_of
from support.cases import case
from support.exploration import explored

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
ZONES = (
    *("UTC", "Europe/Berlin", "America/New_York", "America/St_Johns", "Asia/Kathmandu"),
    *("Australia/Lord_Howe", "Pacific/Apia", "Africa/Casablanca", "America/Sao_Paulo"),
    *("Asia/Beirut", "Atlantic/Azores", "America/Havana", "Etc/GMT+12", "Pacific/Kiritimati"),
)
Day = date | UnsetType


def days(first: date, count: int, zone: str) -> DayRange:
    return DayRange(first, first + timedelta(days=count - 1), ZoneInfo(zone))


@pytest.fixture(params=["system", "package"])
def _database(request: pytest.FixtureRequest) -> Iterator[None]:
    """The time zones of the system, or of a slim image without any."""
    if request.param == "package":
        reset_tzpath([])
    ZoneInfo.clear_cache()
    yield
    reset_tzpath()
    ZoneInfo.clear_cache()


@pytest.mark.usefixtures("_database")
def test_time_zones_are_known_by_their_names_also_where_the_system_has_none() -> None:
    for name in (*ZONES, "US/Pacific", "Europe/Kyiv", "Asia/Calcutta"):
        assert zone_of(name).key == name
    for name in (
        *("", "Mars/Olympus", "Europe", "europe/berlin\0", "../../etc/passwd", "/etc/passwd"),
        *("right/UTC", "posix/UTC", "localtime", "posixrules", "Europe/", "A" * 65, "é", "+01:00"),
    ):
        with (
            case(name),
            pytest.raises(InvalidParameter, match=r"^timeZone: expected the name of a time zone"),
        ):
            zone_of(name)


@pytest.mark.parametrize(
    ("first", "last", "message"),
    [
        (date(2026, 12, 2), UNSET, "from: expected a date up to 'to', and at most 366 days in all"),
        (date(2026, 12, 2), date(2026, 12, 1), "from: expected a date up to 'to'"),
        (date(2025, 12, 1), date(2026, 12, 2), "from: expected a date up to 'to'"),
        (date(1, 1, 1), UNSET, "from: expected a date from 1970-01-03 to 9999-12-29"),
        (UNSET, date(1, 1, 1), "to: expected a date from 1970-01-03 to 9999-12-29"),
        (UNSET, date(9999, 12, 31), "to: expected a date from 1970-01-03 to 9999-12-29"),
    ],
)
def test_a_range_that_is_none_is_refused(first: Day, last: Day, message: str) -> None:
    with pytest.raises(InvalidParameter, match=f"^{message}"):
        day_range(first, last, ZoneInfo("UTC"), NOON)


@pytest.mark.parametrize(
    ("first", "last", "zone", "expected"),
    [
        (UNSET, UNSET, "UTC", ("2026-11-25", "2026-12-01")),
        (UNSET, UNSET, "Pacific/Kiritimati", ("2026-11-26", "2026-12-02")),
        (date(2026, 11, 30), UNSET, "Etc/GMT+12", ("2026-11-30", "2026-12-01")),
        (UNSET, date(2024, 2, 29), "UTC", ("2024-02-23", "2024-02-29")),
        (UNSET, date(1970, 1, 4), "UTC", ("1970-01-03", "1970-01-04")),
        (date(2024, 1, 1), date(2024, 12, 31), "UTC", ("2024-01-01", "2024-12-31")),
        (date(9999, 12, 29), date(9999, 12, 29), "UTC", ("9999-12-29", "9999-12-29")),
    ],
)
def test_a_range_ends_today_and_has_seven_days_by_default(
    first: Day, last: Day, zone: str, expected: tuple[str, str]
) -> None:
    found = day_range(first, last, ZoneInfo(zone), NOON)
    assert (str(found.first), str(found.last)) == expected


@explored(60)
@given(
    st.sampled_from(ZONES),
    st.dates(date(2011, 1, 1), date(2037, 1, 1)),  # Apia left out 30 December 2011
    st.integers(1, 366),
    st.floats(0, 1, exclude_max=True),
)
def test_each_moment_is_on_the_day_that_its_calendar_says(
    zone: str, first: date, count: int, share: float
) -> None:
    of = days(first, count, zone)
    for day, (start, end) in zip(of.days, pairwise(of.bounds), strict=True):
        moment = start + int(share * (end - start))
        assert start == end or utc(moment).astimezone(of.zone).date() == day


def test_sales_are_summed_by_currency_and_are_nothing_in_that_of_the_store_without_any() -> None:
    euros, dollars = SalesRow(1, 300, 0, 0, "EUR"), SalesRow(2, 500, 1, 100, "USD")
    returned, both = SalesRow(0, 0, 1, 50, "USD"), SalesRow(2, 500, 2, 150, "USD")
    assert totals_of([dollars, euros, returned], "EUR") == [euros, both]
    assert totals_of([returned, dollars], "EUR") == [both]
    assert totals_of([], "EUR") == [SalesRow(0, 0, 0, 0, "EUR")]
    assert both.taken == 350
