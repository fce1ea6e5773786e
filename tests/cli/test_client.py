"""The client of the commands: the service and the key, exit statuses, messages, and waits."""

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest

from petstore.cli.client import CommandFailure, ExitStatus, client_of, failure_of, wait_out
from petstore.cli.options import KEY
from petstore_client import Client, OutcomeUnknown, PetstoreError, RateLimited
from petstore_client.errors import NoResponse
from support.manual_clock import ManualClock
from support.odd_service import HANG_UP, error, odd_service, response
from support.process import ServerProcess, free_port
from support.shop import Shop

REX = {"id": 1, "name": "Rex", "categoryId": 4}
Ask = Callable[[Client], Any]

GET: Ask = lambda client: client.categories.get(1)  # noqa: E731


class Failed(NamedTuple):
    """How a request failed, without the address of the service, and what it did before."""

    exit_status: ExitStatus | int
    words: str
    waits: list[float]
    asked: int


def fail(ask: Ask, *responses: bytes, url: str = "") -> Failed:
    """Ask a service that sends these responses, in vain."""
    waits: list[float] = []
    with odd_service(*responses) as service:
        url = url or f"{service.url}/v1"
        with (
            pytest.raises(CommandFailure) as failure,
            client_of(url, lambda seconds, _: waits.append(seconds)) as client,
        ):
            ask(client)
    words = failure.value.message.replace(url, "URL")
    return Failed(failure.value.exit_code, words, waits, len(service.asked))


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key in the environment."""
    monkeypatch.setenv("PETSTORE_KEY", "the-key")


def test_the_documentation_lists_the_exit_status_of_every_refusal() -> None:
    page = (Path(__file__).parents[2] / "docs/client.md").read_text()
    rows = re.findall(r"^\| ([0-9]+) \| [^|]+ \| ([0-9, ]+) \|$", page, re.MULTILINE)
    listed = {int(status): int(row[0]) for row in rows for status in row[1].split(", ")}
    assert listed
    refusals = {status: fail(GET, error(status, Retry_After=601)).exit_status for status in listed}
    assert refusals == listed


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
def test_a_refusal_is_one_safe_line(refusal: bytes, expected: ExitStatus, words: str) -> None:
    assert fail(GET, refusal)[:2] == (expected, words)


@pytest.mark.parametrize(
    "odd",
    [
        response(200, b"<html>Welcome</html>"),
        response(200, [REX]),
        response(200, REX | {"id": "1"}),
        response(403, b"<html>nginx</html>"),
        response(302, b"", Location="https://elsewhere.example/"),
        # No missing resource, but a wrong address: no limit is in its fields.
        response(404, {"code": "not_found", "message": "there is nothing here", "status": 404}),
    ],
)
def test_a_response_of_another_service_is_reported(odd: bytes) -> None:
    exit_status, words, _, asked = fail(GET, odd, response(201, REX))
    assert (exit_status, asked) == (ExitStatus.SERVICE, 1)
    assert re.fullmatch(
        r"URL responds with \d{3}, not as a Petstore service does: .*: check --url", words
    )


def test_a_refused_connection_is_reported_after_a_few_attempts() -> None:
    failed = fail(GET, url=f"http://127.0.0.1:{free_port()}/v1")
    assert failed[:2] == (ExitStatus.SERVICE, "cannot reach URL: Connection refused")
    assert len(failed.waits) == 3
    assert sum(failed.waits) <= 3.5


def test_a_proxy_that_cannot_be_used_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "socks5://proxy.example")
    with (
        pytest.raises(CommandFailure, match=r"^http_proxy: expected an HTTP proxy") as failure,
        client_of("http://shop.example/v1"),
    ):
        pass
    assert failure.value.exit_code == ExitStatus.FAILED


def test_a_change_whose_outcome_is_unknown_says_so() -> None:
    exit_status, words, _, asked = fail(lambda client: client.pets.delete(1), HANG_UP)
    assert (exit_status, asked) == (ExitStatus.SERVICE, 1)
    assert words.startswith("the outcome of DELETE /pets/1 is unknown: no response from URL")


@pytest.mark.parametrize(
    ("seconds", "until"), [(601, "2026-12-01T12:10:01Z"), (43200, "2026-12-02T00:00:00Z")]
)
def test_a_limit_that_lasts_too_long_is_reported_with_its_end_and_not_waited_out(
    clock: ManualClock, seconds: int, until: str
) -> None:
    failed = fail(GET, error(429, Retry_After=601))
    assert (failed.exit_status, failed.waits) == (ExitStatus.LIMIT, [])
    failure = failure_of(RateLimited("it is reached", status=429, retry_after=seconds), clock())
    assert failure.exit_code == ExitStatus.LIMIT
    assert failure.message == f"it is reached, until {until}"


@pytest.mark.parametrize(
    ("cause", "reason"),
    [(None, "the rate limit of your key is reached"), (NoResponse("no \x1b"), "no \\x1b")],
)
def test_a_wait_is_reported_with_its_reason(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    cause: PetstoreError | None,
    reason: str,
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    for seconds in (41.2, 0.4):
        wait_out(seconds, cause)
    assert slept == [41.2, 0.4]
    assert capsys.readouterr().err == f"{reason}; trying again in 42 s\n"


def test_an_interrupted_wait_has_the_exit_status_of_an_interrupt() -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with (
        odd_service(error(429, Retry_After=41)) as service,
        pytest.raises(click.exceptions.Exit) as ended,
        client_of(service.url, interrupted) as client,
    ):
        GET(client)
    assert ended.value.exit_code == 130


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
    with pytest.raises(CommandFailure) as failed, client_of("http://a/v1", resume_hint="go on so"):
        raise failure
    assert (failed.value.exit_code, failed.value.message) == (expected, words)


# The address of the service, and the key

NOWHERE = Shop("http://127.0.0.1:1", "a-key")


@pytest.mark.parametrize("key", ["", "\n", "a key", "a\r\nX-Evil: 1", "schlüssel", "\x1b[2J"])
def test_without_a_valid_key_no_request_is_sent(key: str) -> None:
    missing = f"no key: put your API key into the environment variable {KEY}"
    wrong = f"{KEY}: expected an API key, which has no spaces and no special characters"
    said = NOWHERE.fail("pets", "list", PETSTORE_KEY=key, status=5)
    assert said == (wrong if key.strip() else missing)


@pytest.mark.parametrize(
    "url",
    [
        *("", "localhost:8000", "http://localhost/v1?x=1", "http://localhost\n"),
        *("http://u:s3cret@localhost", "u:s3cret@localhost", "http://localhost/\udce9"),
    ],
)
def test_an_invalid_address_is_refused(url: str) -> None:
    words = NOWHERE.fail("pets", "list", "--url", url, status=2)
    assert words.startswith("Invalid value for '--url'")
    assert "expected an address such as https://shop.example, without user name" in words
    assert "s3cret" not in words


def test_https_to_a_service_without_tls_is_reported(server: ServerProcess, token: str) -> None:
    url = server.url.replace("http", "https")
    words = Shop(url, token).fail("pets", "list", status=6)
    assert words.startswith(f"cannot reach {url}/v1: [SSL")


@pytest.mark.parametrize(
    ("ending", "path"),
    [*((end, "/v1/pets") for end in ("", "/", "/v1", "/v1/")), ("/shop/api", "/shop/api/v1/pets")],
)
def test_the_service_url_can_include_the_version_or_a_path_and_the_option_overrides_it(
    ending: str, path: str
) -> None:
    with odd_service(*[response(200, [])] * 2) as service:
        url = f"{service.url}{ending}"
        Shop(url, "a-key\n").succeed("pets", "list")
        NOWHERE.succeed("pets", "list", "--url", url)
        asked = [
            (each.target.partition("?")[0], each.fields["authorization"]) for each in service.asked
        ]
    assert asked == [(path, "Bearer a-key")] * 2
