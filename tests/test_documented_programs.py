"""The programs of docs/limits.md and docs/events.md run as they are printed."""

import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from support.console import blocks
from support.odd_service import odd_service, response
from support.process import ServerProcess, free_port
from support.shop import Shop
from support.waiting import within

DOCS = Path(__file__).parent.parent / "docs"
SECONDS = 30


def programs(page: str) -> list[str]:
    text = (DOCS / page).read_text()
    return [block.text for block in blocks(text) if block.language == "python"]


(CONSUMER,) = programs("events.md")
(PROGRAM,) = (text for text in programs("limits.md") if text.startswith("# polite.py"))
Send = Callable[[urllib.request.Request, Callable[[float], None]], bytes]


FOUND = response(200, [])


def request_to(url: str) -> urllib.request.Request:
    return urllib.request.Request(url)  # noqa: S310 - http and nothing else


@pytest.fixture(scope="module")
def send() -> Send:
    """The function of the guide."""
    names: dict[str, Send] = {}
    exec(PROGRAM, names)  # noqa: S102 - what the page shows
    return names["send"]


def test_the_example_waits_for_retry_after_or_a_growing_random_time_and_sends_again(
    send: Send,
) -> None:
    waits: list[float] = []
    told = (response(429, Retry_After=7), response(503, Retry_After=1), FOUND)
    with odd_service(*told) as service:
        assert send(request_to(service.url), waits.append) == b"[]"
    assert waits == [7, 1]
    waits.clear()
    with odd_service(response(502), response(504), response(502), FOUND) as service:
        send(request_to(service.url), waits.append)
    assert all(0 <= wait <= most for wait, most in zip(waits, (0.5, 1, 2), strict=True))


@pytest.mark.parametrize(
    "responses",
    [[response(429, Retry_After=3600)], [response(400)], [response(503, Retry_After=1)] * 4],
    ids=["long wait", "no retry", "four attempts"],
)
def test_the_example_gives_up_after_several_attempts(send: Send, responses: list[bytes]) -> None:
    waits: list[float] = []
    with odd_service(*responses) as service, pytest.raises(urllib.error.HTTPError) as error:
        send(request_to(service.url), waits.append)
    error.value.close()
    assert waits == [1] * (len(responses) - 1)
    waits.clear()
    with pytest.raises(urllib.error.URLError):
        send(request_to(f"http://127.0.0.1:{free_port()}"), waits.append)
    assert len(waits) == 3


@contextmanager
def running(folder: Path, program: str, **environment: str) -> Iterator[Path]:
    output = folder / "output"
    with output.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-c", program],
            cwd=folder,
            env={**os.environ, **environment},
            stdout=file,
            stderr=subprocess.DEVNULL,
        )
    try:
        yield output
    finally:
        process.kill()
        process.wait()


def test_the_consumer_sees_every_event_and_resumes_where_it_stopped(
    server: ServerProcess, token: str, tmp_path: Path
) -> None:
    shop = Shop(f"{server.url}/v1", token)

    def new_pet() -> str:
        return f"pet.created pet/{shop.ask('pets', 'add', 'Rex', '--category', 1)['id']}"

    def newest_cursor() -> str:
        headers = {"Authorization": f"Bearer {token}"}
        page = httpx.get(f"{server.url}/v1/events?cursor=latest", headers=headers)
        return str(httpx.URL(page.links["latest"]["url"]).params["cursor"])

    first, saved = new_pet(), tmp_path / "cursor.txt"
    with running(tmp_path, CONSUMER, **shop.environment) as output:
        assert within(SECONDS, lambda: saved.exists() and saved.read_text() == newest_cursor())
        assert output.read_text().splitlines().count(first) == 1
    second = new_pet()
    with running(tmp_path, CONSUMER, **shop.environment) as output:
        assert within(SECONDS, lambda: output.read_text().splitlines() == [second])
        third = new_pet()
        assert within(SECONDS, lambda: output.read_text().splitlines() == [second, third])
