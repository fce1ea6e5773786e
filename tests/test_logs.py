"""The log: a line for each request, whoever reads it, and no harm if nobody does."""

import io
import json
import logging
import os
import select
from collections.abc import Callable, Iterator

import pytest

from petstore.logs import RequestLog, configure_logging
from support.manual_clock import ManualClock
from support.patience import within

REQUEST = ("abc123", 7, "GET", "listPets", 200, 0.0123456)


class FailingDisk(io.BytesIO):
    """A stream that cannot be written to while it is ``full``."""

    full = True
    refused = 0

    def flush(self) -> None:
        if self.full:
            self.refused += 1
            raise OSError(28, "No space left on device")


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """The root logger, left as it was found."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers = []
    yield root
    root.handlers, root.level = handlers, level


def logged(*requests: tuple[str, int | None, str, str | None, int, float], person: bool) -> str:
    """Return what a log has of ``requests`` once it is closed."""
    stream = io.BytesIO()
    log = RequestLog(stream, ManualClock(), for_person=person)
    for request in requests:
        log.add(*request)
    log.close()
    return stream.getvalue().decode()


def test_a_request_is_one_json_object_on_one_line() -> None:
    text = logged(REQUEST, person=False)
    assert text.endswith("}\n")
    assert json.loads(text) == {
        "time": "2026-12-01T12:00:00.000Z",
        "request": "abc123",
        "key": 7,
        "method": "GET",
        "operation": "listPets",
        "status": 200,
        "milliseconds": 12.346,
        "level": "info",
        "event": "request",
    }


def test_what_is_not_known_of_a_request_is_null() -> None:
    line = json.loads(logged(("abc123", None, "GET", None, 404, 0.001), person=False))
    assert (line["key"], line["operation"]) == (None, None)


def test_lines_are_in_the_order_of_the_requests() -> None:
    requests = [(f"r{n}", n, "GET", "getPet", 200, 0.001) for n in range(500)]
    lines = [json.loads(line) for line in logged(*requests, person=False).splitlines()]
    assert [line["key"] for line in lines] == list(range(500))


def test_the_time_is_that_of_the_clock_to_the_millisecond() -> None:
    stream, clock = io.BytesIO(), ManualClock()
    log = RequestLog(stream, clock, for_person=False)
    for seconds in (0.007, 0.9, 0.1, 86400):
        clock.advance(seconds)
        log.add(*REQUEST)
    log.close()
    assert [json.loads(line)["time"] for line in stream.getvalue().splitlines()] == [
        "2026-12-01T12:00:00.007Z",
        "2026-12-01T12:00:00.907Z",
        "2026-12-01T12:00:01.007Z",
        "2026-12-02T12:00:01.007Z",
    ]


@pytest.mark.parametrize(
    ("status", "color"), [(200, "32"), (304, "36"), (404, "33"), (500, "31"), (100, "31")]
)
def test_a_person_reads_a_line_with_the_status_in_color(status: int, color: str) -> None:
    text = logged(("abc123", 7, "GET", "listPets", status, 0.0123456), person=True)
    assert text == (
        f"12:00:00 \x1b[{color}m{status}\x1b[0m GET    listPets     key=7 12.35 ms abc123\n"
    )


def test_a_person_sees_a_dash_for_what_is_not_known() -> None:
    text = logged(("abc123", None, "GET", None, 200, 0.001), person=True)
    assert text.endswith(" GET    -            key=- 1.00 ms abc123\n")


def test_a_reader_who_stalls_holds_nobody_up_and_what_he_misses_is_counted() -> None:
    theirs, ours = os.pipe()
    with os.fdopen(ours, "wb") as stream, os.fdopen(theirs, "rb") as reader:
        log = RequestLog(stream, ManualClock(), for_person=False, longest_backlog=2000)
        for _ in range(2000):  # more than the pipe holds
            log.add(*REQUEST)
        assert select.select([reader], [], [], 5) == ([reader], [], [])
        for _ in range(20_000):
            log.add(*REQUEST)
        for _ in range(4000):
            assert json.loads(reader.readline())["request"] == "abc123"
        told = json.loads(reader.readline())
        assert (told["level"], told["event"]) == ("warning", "18000 lines dropped")
        log.add("last", *REQUEST[1:])
        assert json.loads(reader.readline())["request"] == "last"
        log.close()


def test_a_disk_that_was_full_gets_the_lines_that_come_once_it_is_not() -> None:
    disk = FailingDisk()
    log = RequestLog(disk, ManualClock(), for_person=False)
    log.add(*REQUEST)
    assert within(20, lambda: disk.refused > 1)
    disk.full = False
    log.add("last", *REQUEST[1:])
    log.close()
    *_, last, told = disk.getvalue().splitlines()
    assert json.loads(last)["request"] == "last"
    assert json.loads(told)["event"] == "1 lines dropped"


def records(*, person: bool, emit: Callable[[], object]) -> str:
    """Return what a log has of what ``emit`` logs through ``logging``."""
    stream = io.BytesIO()
    log = RequestLog(stream, ManualClock(), for_person=person)
    configure_logging(log)
    emit()
    log.close()
    return stream.getvalue().decode()


def test_a_log_without_a_line_needs_no_end() -> None:
    RequestLog(io.BytesIO(), ManualClock(), for_person=False).close()


def test_other_records_are_json_too(root: logging.Logger) -> None:
    logger = logging.getLogger("petstore.test")
    line = json.loads(records(person=False, emit=lambda: logger.warning("%d things", 3)))
    assert line.pop("time").endswith("Z")
    assert line == {"level": "warning", "event": "3 things", "logger": "petstore.test"}
    assert root.level == logging.INFO


@pytest.mark.parametrize("person", [False, True])
def test_records_and_requests_are_in_the_order_they_came(
    root: logging.Logger, *, person: bool
) -> None:
    stream = io.BytesIO()
    log = RequestLog(stream, ManualClock(), for_person=person)
    configure_logging(log)
    log.add("first", *REQUEST[1:])
    root.warning("second")
    log.add("third", *REQUEST[1:])
    log.close()
    lines = stream.getvalue().decode().splitlines()
    words = ("first", "second", "third")
    assert all(word in line for word, line in zip(words, lines, strict=True))


def test_a_traceback_stays_on_the_line_of_its_json_object(root: logging.Logger) -> None:
    text = records(person=False, emit=lambda: fail(root))
    assert text.count("\n") == 1
    line = json.loads(text)
    assert (line["level"], line["event"]) == ("error", "it failed")
    assert line["traceback"].startswith("Traceback (most recent call last):\n")
    assert line["traceback"].endswith("ZeroDivisionError: division by zero")


@pytest.mark.parametrize(
    ("level", "color"),
    [(logging.INFO, "0"), (logging.WARNING, "33"), (logging.ERROR, "31"), (logging.CRITICAL, "31")],
)
def test_a_person_reads_the_level_in_color(root: logging.Logger, level: int, color: str) -> None:
    text = records(person=True, emit=lambda: root.log(level, "hello"))
    name = logging.getLevelName(level).lower()
    assert text[8:] == f" \x1b[{color}m{name:8}\x1b[0m hello\n"


def test_a_person_sees_the_traceback_below_the_line(root: logging.Logger) -> None:
    first, second, *_, last = records(person=True, emit=lambda: fail(root)).splitlines()
    assert first.endswith("it failed")
    assert second == "Traceback (most recent call last):"
    assert last == "ZeroDivisionError: division by zero"


def test_what_is_only_for_debugging_is_not_logged(root: logging.Logger) -> None:
    assert records(person=False, emit=lambda: root.debug("details")) == ""


def fail(logger: logging.Logger) -> None:
    try:
        1 / 0  # noqa: B018 - it is for the traceback
    except ZeroDivisionError:
        logger.exception("it failed")
