"""The programs of docs/limits.md and docs/events.md run as they are printed."""

import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import httpx
import pytest

from support.console import blocks
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


@contextmanager
def responding(*responses: tuple[int, str | None]) -> Iterator[str]:
    left = iter(responses)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, retry_after = next(left)
            self.send_response(status)
            if retry_after:
                self.send_header("Retry-After", retry_after)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"[]")

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, args=[0.01]).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


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
    with responding((429, "7"), (503, "1"), (200, None)) as url:
        assert send(request_to(url), waits.append) == b"[]"
    assert waits == [7, 1]
    waits.clear()
    with responding((502, None), (504, None), (502, None), (200, None)) as url:
        send(request_to(url), waits.append)
    assert all(0 <= wait <= most for wait, most in zip(waits, (0.5, 1, 2), strict=True))


@pytest.mark.parametrize("responses", [[(429, "3600")], [(400, None)], [(503, "1")] * 4])
def test_the_example_gives_up_after_several_attempts(
    send: Send, responses: list[tuple[int, str | None]]
) -> None:
    waits: list[float] = []
    with (
        responding(*responses) as url,
        pytest.raises(urllib.error.HTTPError) as error,
    ):
        send(request_to(url), waits.append)
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
