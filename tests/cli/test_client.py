"""The client of the commands: exit statuses, messages, and what is said of a wait."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
import pytest

from petstore.cli.client import CommandFailure, ExitStatus, client_of, failure_of, wait_out
from petstore_client import Client, OutcomeUnknown, PetstoreError, RateLimited
from petstore_client.errors import IdempotencyKeyInUse, KeyBanned, NoResponse, ServiceUnavailable
from support.manual_clock import ManualClock
from support.odd_service import HANG_UP, OddService, error, odd_service, response
from support.process import free_port


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


REX = {"id": 1, "name": "Rex", "categoryId": 4}
CREATED = response(201, REX)
Ask = Callable[[Client], Any]

GET: Ask = lambda client: client.categories.get(1)  # noqa: E731
PATCH: Ask = lambda client: client.pets.update(1, status=None)  # noqa: E731
DELETE: Ask = lambda client: client.pets.delete(1)  # noqa: E731


class Setup:
    """A client that notes its waits, and the service it asks."""

    def __init__(self, service: OddService) -> None:
        self.asked = service.asked
        self.url = f"{service.url}/v1"
        self.waits: list[float] = []

    def fail(self, ask: Ask) -> tuple[ExitStatus | int, str]:
        """Return how a request fails, without the address of the service."""
        with (
            pytest.raises(CommandFailure) as failure,
            client_of(self.url, lambda seconds, _: self.waits.append(seconds)) as client,
        ):
            ask(client)
        return failure.value.exit_code, failure.value.message.replace(self.url, "URL")


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key in the environment."""
    monkeypatch.setenv("PETSTORE_KEY", "the-key")


@pytest.fixture
def set_up() -> Iterator[Callable[..., Setup]]:
    """Takes responses; returns a client of a service that sends them."""
    with ExitStack() as stack:
        yield lambda *responses: Setup(stack.enter_context(odd_service(*responses)))


SetUp = Callable[..., Setup]


# Refusals


def test_the_documentation_lists_the_exit_status_of_every_refusal(set_up: SetUp) -> None:
    page = (Path(__file__).parents[2] / "docs/client.md").read_text()
    rows = re.findall(r"^\| ([0-9]+) \| [^|]+ \| ([0-9, ]+) \|$", page, re.MULTILINE)
    listed = {int(status): int(row[0]) for row in rows for status in row[1].split(", ")}
    assert listed
    refusals = {status: set_up(error(status, Retry_After=601)).fail(GET)[0] for status in listed}
    assert refusals == listed


def test_a_wrong_base_url_is_not_reported_as_a_missing_resource(set_up: SetUp) -> None:
    past = response(404, {"code": "not_found", "message": "there is nothing here", "status": 404})
    exit_status, words = set_up(past).fail(GET)
    assert exit_status == ExitStatus.SERVICE
    assert words.startswith("URL responds with 404, not as a Petstore service does: ")
    assert words.endswith(": check --url")


@pytest.mark.parametrize(
    ("refusal", "expected", "words"),
    [
        (error(400, code="unknown_pet"), ExitStatus.NOT_FOUND, "no"),
        (error(400, code="unknown_category"), ExitStatus.NOT_FOUND, "no"),
        (error(500, X_Request_Id="r-17"), ExitStatus.SERVICE, "no (request r-17)"),
        (
            error(400, message="\x1b[2Jgone\n\u202eback"),
            ExitStatus.REFUSED,
            r"\x1b[2Jgone\n\u202eback",
        ),
    ],
)
def test_a_refusal_is_one_safe_line(
    set_up: SetUp, refusal: bytes, expected: ExitStatus, words: str
) -> None:
    assert set_up(refusal).fail(GET) == (expected, words)


@pytest.mark.parametrize(
    "odd",
    [
        response(200, b"<html>Welcome</html>"),
        response(200, [REX]),
        response(200, REX | {"id": "1"}),
        response(403, b"<html>nginx</html>"),
        response(302, b"", Location="https://elsewhere.example/"),
    ],
)
def test_a_response_of_another_service_is_reported(set_up: SetUp, odd: bytes) -> None:
    setup = set_up(odd, CREATED)
    exit_status, words = setup.fail(GET)
    assert exit_status == ExitStatus.SERVICE
    assert re.fullmatch(
        r"URL responds with \d{3}, not as a Petstore service does: .*: check --url", words
    )
    assert len(setup.asked) == 1


def test_a_refused_connection_is_reported_after_a_few_attempts(set_up: SetUp) -> None:
    setup = set_up(HANG_UP)
    setup.url = f"http://127.0.0.1:{free_port()}/v1"
    assert setup.fail(GET) == (ExitStatus.SERVICE, "cannot reach URL: Connection refused")
    assert len(setup.waits) == 3
    assert sum(setup.waits) <= 3.5


def test_a_proxy_that_cannot_be_used_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "socks5://proxy.example")
    with (
        pytest.raises(CommandFailure, match=r"^http_proxy: expected an HTTP proxy") as failure,
        client_of("http://shop.example/v1"),
    ):
        pass
    assert failure.value.exit_code == ExitStatus.FAILED


@pytest.mark.parametrize("ask", [PATCH, DELETE])
def test_a_change_whose_outcome_is_unknown_says_so(set_up: SetUp, ask: Ask) -> None:
    setup = set_up(HANG_UP, CREATED)
    exit_status, words = setup.fail(ask)
    assert exit_status == ExitStatus.SERVICE
    assert re.match(
        r"the outcome of (PATCH|DELETE) /pets/1 is unknown: no response from URL", words
    )
    assert len(setup.asked) == 1


# Waiting


@pytest.mark.parametrize(
    ("seconds", "until"), [(601, "2026-12-01T12:10:01Z"), (43200, "2026-12-02T00:00:00Z")]
)
def test_a_limit_that_lasts_too_long_is_reported_with_its_end_and_not_waited_out(
    set_up: SetUp, clock: ManualClock, seconds: int, until: str
) -> None:
    setup = set_up(error(429, Retry_After=601))
    assert (setup.fail(GET)[0], setup.waits) == (ExitStatus.LIMIT, [])
    failure = failure_of(RateLimited("it is reached", status=429, retry_after=seconds), clock())
    assert failure.exit_code == ExitStatus.LIMIT
    assert failure.message == f"it is reached, until {until}"


@pytest.mark.parametrize(
    ("cause", "notice"),
    [
        (None, "The limit is reached."),
        (RateLimited("no"), "The limit is reached."),
        (KeyBanned("no"), "The key is banned."),
        (IdempotencyKeyInUse("no"), "The first try is still under way."),
        (NoResponse("no"), "The service does not respond."),
        (ServiceUnavailable("no"), "The service is not available."),
        (PetstoreError("no"), "The service is not available."),
    ],
)
def test_a_wait_is_reported_with_its_reason(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    cause: PetstoreError | None,
    notice: str,
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    for seconds in (41.2, 0.4):
        wait_out(seconds, cause)
    assert slept == [41.2, 0.4]
    assert capsys.readouterr().err == f"{notice} Trying again in 42 s.\n"


def test_an_interrupted_wait_has_the_exit_status_of_an_interrupt() -> None:
    with (
        odd_service(error(429, Retry_After=41)) as service,
        pytest.raises(click.exceptions.Exit) as ended,
        client_of(service.url, interrupted) as client,
    ):
        GET(client)
    assert ended.value.exit_code == 130


# Ctrl-C


@pytest.mark.parametrize(
    ("failure", "expected", "words"),
    [
        (KeyboardInterrupt(), 130, "interrupted: go on so"),
        (OutcomeUnknown("who knows"), ExitStatus.SERVICE, "who knows; go on so"),
    ],
)
def test_a_command_of_many_requests_says_how_to_resume(
    failure: BaseException, expected: int, words: str
) -> None:
    with (
        pytest.raises(CommandFailure) as failed,
        client_of("http://a/v1", resume_hint="go on so"),
    ):
        raise failure
    assert (failed.value.exit_code, failed.value.message) == (expected, words)
