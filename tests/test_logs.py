"""The log: one line per request, and no harm if it is not read."""

import io
import json
import logging
import os
import select
from collections.abc import Callable
from typing import Any

import pytest

from petstore.logs import LogEvent, RequestLine, RequestLog, configure_logging
from support.manual_clock import ManualClock
from support.waiting import within


def request(request: str = "abc123", **members: Any) -> RequestLine:
    usual = {
        "client": "192.0.2.7",
        "key": 7,
        "person": None,
        "method": "GET",
        "route": "/v1/pets",
        "operation": "listPets",
        "status": 200,
        "code": None,
        "limit": None,
        "bytes": 81,
        "milliseconds": 12.346,
    }
    return RequestLine(request=request, **{**usual, **members})


class FailingDisk(io.BytesIO):
    """A stream that cannot be written to while it is ``full``."""

    full = True
    refused = 0

    def flush(self) -> None:
        if self.full:
            self.refused += 1
            raise OSError(28, "No space left on device")


def logged(*lines: RequestLine, person: bool = False, **rules: Any) -> str:
    stream = io.BytesIO()
    log = RequestLog(stream, ManualClock(), for_person=person, **rules)
    for line in lines:
        log.add(line)
    log.close()
    return stream.getvalue().decode()


def records(*, person: bool, emit: Callable[[], object]) -> str:
    stream = io.BytesIO()
    log = RequestLog(stream, ManualClock(), for_person=person)
    configure_logging(log)
    emit()
    log.close()
    return stream.getvalue().decode()


def test_a_request_is_one_json_object_on_one_line() -> None:
    text = logged(request(status=429, code="rate_limit_exceeded", limit="key_day"))
    assert text.endswith("}\n")
    line = json.loads(text)
    assert (line["code"], line["limit"]) == ("rate_limit_exceeded", "key_day")
    assert (line["milliseconds"], line["level"]) == (12.346, "info")
    assert json.loads(logged(request(), has_addresses=False))["client"] is None


def test_the_time_has_milliseconds() -> None:
    stream, clock = io.BytesIO(), ManualClock()
    log = RequestLog(stream, clock, for_person=False)
    for seconds in (0.007, 0.9, 86400):
        clock.advance(seconds)
        log.add(request())
    log.close()
    times = [json.loads(line)["time"][8:] for line in stream.getvalue().splitlines()]
    assert times == ["01T12:00:00.007Z", "01T12:00:00.907Z", "02T12:00:00.907Z"]


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (
            request(status=404),
            "12:00:00 404 GET    listPets     key=7 192.0.2.7 12.35 ms 81 B abc123\n",
        ),
        (
            request(status=429, code="rate_limit_exceeded", limit="key_minute"),
            " abc123 rate_limit_exceeded (key_minute)\n",
        ),
        (
            request(key=None, client=None, route=None, operation=None),
            " GET    -            key=- - 12.35 ms 81 B abc123\n",
        ),
        (request(key=None, person=2), " person=2 192.0.2.7 "),
        (request(key=None, login="b9cc2357"), " login=b9cc2357 192"),
        (request(operation=None, route="/docs"), " GET    /docs        "),
    ],
)
def test_the_human_readable_format_has_the_same_parts(line: RequestLine, shown: str) -> None:
    assert shown in logged(line, person=True)


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_only_a_failed_health_check_is_logged(path: str) -> None:
    succeeded = request(route=path, operation=None)
    failed = request(route=path, operation=None, status=503)
    assert logged(succeeded) == ""
    assert logged(failed) != ""


def test_lines_below_the_level_are_not_logged(root: logging.Logger) -> None:
    assert logged(request(), level="debug") != ""
    assert logged(request(), level="warning") == ""
    stream = io.BytesIO()
    log = RequestLog(stream, ManualClock(), for_person=False, level="error")
    configure_logging(log)
    root.warning("first")
    root.error("second")
    log.close()
    assert json.loads(stream.getvalue())["event"] == "second"


def test_an_event_has_a_name_a_message_and_its_members(root: logging.Logger) -> None:
    event = LogEvent("started", "the service has started", workers=2)
    line = json.loads(records(person=False, emit=lambda: root.info(event)))
    del line["time"], line["logger"]
    message = "the service has started"
    assert line == {"level": "info", "event": "started", "message": message, "workers": 2}
    assert records(person=True, emit=lambda: root.info(event)).endswith(f" {message}\n")


def test_a_stalled_reader_blocks_nothing_and_dropped_lines_are_counted() -> None:
    theirs, ours = os.pipe()
    with os.fdopen(ours, "wb") as stream, os.fdopen(theirs, "rb") as reader:
        log = RequestLog(stream, ManualClock(), for_person=False, max_backlog=2000)
        for _ in range(2000):  # more than the pipe holds
            log.add(request())
        assert select.select([reader], [], [], 5) == ([reader], [], [])
        for _ in range(20_000):
            log.add(request())
        for _ in range(4000):
            assert json.loads(reader.readline())["request"] == "abc123"
        report = json.loads(reader.readline())
        assert (report["level"], report["event"]) == ("warning", "18000 lines dropped")
        log.add(request("last"))
        assert json.loads(reader.readline())["request"] == "last"
        log.close()


def test_logging_resumes_once_a_full_disk_has_space() -> None:
    disk = FailingDisk()
    log = RequestLog(disk, ManualClock(), for_person=False)
    log.add(request())
    assert within(30, lambda: disk.refused > 1)
    disk.full = False
    log.add(request("last"))
    log.close()
    *_, last, report = disk.getvalue().splitlines()
    assert json.loads(last)["request"] == "last"
    assert json.loads(report)["event"] == "1 lines dropped"


def test_records_of_other_loggers_are_json_and_those_for_debugging_are_not_there(
    root: logging.Logger,
) -> None:
    logger = logging.getLogger("petstore.test")

    def emit() -> None:
        logger.debug("details")
        logger.warning("%d things", 3)

    line = json.loads(records(person=False, emit=emit))
    assert line.pop("time").endswith("Z")
    assert line == {"level": "warning", "event": "3 things", "logger": "petstore.test"}
    assert root.level == logging.INFO


@pytest.mark.parametrize("person", [False, True])
def test_records_and_request_lines_keep_their_order(root: logging.Logger, *, person: bool) -> None:
    stream = io.BytesIO()
    log = RequestLog(stream, ManualClock(), for_person=person)
    configure_logging(log)
    for number in range(500):
        if number % 3:
            log.add(request(f"request {number}."))
        else:
            root.warning("record %d.", number)
    log.close()
    lines = stream.getvalue().decode().splitlines()
    assert all(f" {number}." in line for number, line in zip(range(500), lines, strict=True))


def test_a_traceback_is_in_the_line_of_json_and_below_the_line_for_a_person(
    root: logging.Logger,
) -> None:
    def fail() -> None:
        try:
            1 / 0  # noqa: B018 - it is for the traceback
        except ZeroDivisionError:
            root.exception("it failed")

    (text,) = records(person=False, emit=fail).splitlines()
    line = json.loads(text)
    assert (line["level"], line["event"]) == ("error", "it failed")
    assert line["traceback"].startswith("Traceback (most recent call last):\n")
    assert line["traceback"].endswith("ZeroDivisionError: division by zero")
    first, second, *_, last = records(person=True, emit=fail).splitlines()
    assert first.endswith("it failed")
    assert second == "Traceback (most recent call last):"
    assert last == "ZeroDivisionError: division by zero"
