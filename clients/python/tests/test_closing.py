"""What a client or a stream does when it is closed, perhaps by another thread or task."""

import asyncio
import json
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from petstore_client import AsyncClient, Client, OutcomeUnknown, errors
from petstore_client._lifetime import Lifetime
from support.client_faces import KEY, Face, SleepingClock, each_face
from support.odd_service import error, odd_service, response
from support.tls import self_signed_certificate

PET = {"id": 7, "name": "Bella", "categoryId": 1}
EVENT = {
    "id": "evt_1",
    "type": "pet.created",
    "timestamp": "2026-11-22T10:00:00.123Z",
    "resource": "pet/7",
    "sequence": 41,
    "data": PET,
}
PROMPT = 5.0
"""Seconds within which everything ends; without an interruption it would take half a minute."""


class Quiet(BaseHTTPRequestHandler):
    """Has an animal and two events, and then leaves every long poll and POST without a response."""

    waiting: threading.Semaphore
    over: threading.Event

    def do_GET(self) -> None:
        if "wait=" in self.path:
            self.do_POST()
        elif self.path.startswith("/v1/events"):
            self.respond([EVENT, EVENT | {"id": "evt_2"}], '</v1/events?cursor=b>; rel="next"')
        else:
            self.respond([PET])

    def do_POST(self) -> None:
        self.waiting.release()
        self.over.wait()

    def respond(self, body: object, link: str = "") -> None:
        content = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Link", link)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def quiet_service(
    context: ssl.SSLContext | None = None,
) -> Iterator[tuple[str, Callable[[], bool]]]:
    """Run a quiet service; give its address, and what waits until a request waits there."""
    handler = type("Handler", (Quiet,), {})
    handler.waiting, handler.over = threading.Semaphore(0), threading.Event()  # type: ignore[attr-defined]
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    if context is not None:
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    scheme = "http" if context is None else "https"
    try:
        yield f"{scheme}://127.0.0.1:{server.server_port}/v1", handler.waiting.acquire  # type: ignore[attr-defined]
    finally:
        handler.over.set()  # type: ignore[attr-defined]
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as pool:
        yield pool


def outcome(future: Future[Any]) -> Any:
    return future.result(PROMPT)


# Streams


def test_another_thread_ends_a_stream_that_waits_for_events(pool: ThreadPoolExecutor) -> None:
    with quiet_service() as (url, waits), Client(KEY, url) as client:
        stream = client.events.follow()
        seen = pool.submit(list, stream)
        assert waits()
        stream.close()
        assert [event.id for event in outcome(seen)] == ["evt_1", "evt_2"]
        assert stream.cursor == "b"
        assert client.pets.get(7).id == 7


def test_another_thread_ends_a_stream_over_tls(pool: ThreadPoolExecutor, tmp_path: Path) -> None:
    certificate, key = self_signed_certificate(tmp_path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    trusting = ssl.create_default_context(cafile=certificate)
    with (
        quiet_service(context) as (url, waits),
        Client(KEY, url, ssl_context=trusting) as client,
    ):
        stream = client.events.follow()
        seen = pool.submit(list, stream)
        assert waits()
        stream.close()
        assert len(outcome(seen)) == 2


def test_another_task_ends_a_stream_that_waits_for_events() -> None:
    async def run(url: str, waits: Callable[[], bool]) -> None:
        async with AsyncClient(KEY, url) as client:
            stream = client.events.follow()

            async def follow() -> list[str]:
                return [event.id async for event in stream]

            seen = asyncio.create_task(follow())
            assert await asyncio.to_thread(waits)
            await stream.aclose()
            assert await asyncio.wait_for(seen, PROMPT) == ["evt_1", "evt_2"]
            assert stream.cursor == "b"
            assert (await client.pets.get(7)).id == 7

    with quiet_service() as (url, waits):
        asyncio.run(run(url, waits))


def test_a_stream_ends_where_its_loop_closes_it() -> None:
    with quiet_service() as (url, _), Client(KEY, url) as client:
        for event in (stream := client.events.follow()):
            assert event.id == "evt_1"
            stream.close()
        with client.events.follow() as stream:
            pages = stream.pages()
            assert len(next(pages)) == 2
        assert list(pages) == []
        assert list(stream) == []


def test_an_async_stream_ends_where_its_loop_closes_it() -> None:
    async def run(url: str) -> None:
        async with AsyncClient(KEY, url) as client:
            async for event in (stream := client.events.follow()):
                assert event.id == "evt_1"
                await stream.aclose()
            async with client.events.follow() as stream:
                pages = stream.pages()
                assert len(await anext(pages)) == 2
            assert [page async for page in pages] == []
            assert [event async for event in stream] == []

    with quiet_service() as (url, _):
        asyncio.run(run(url))


def test_a_stream_that_is_closed_leaves_another_one_open(pool: ThreadPoolExecutor) -> None:
    with quiet_service() as (url, waits), Client(KEY, url) as client:
        one, other = client.events.follow(), client.events.follow()
        seen, rest = pool.submit(list, one), pool.submit(list, other)
        assert waits()
        assert waits()
        one.close()
        assert len(outcome(seen)) == 2
        assert rest.running()
        other.close()
        assert len(outcome(rest)) == 2


def test_another_thread_ends_a_stream_that_waits_for_a_service_that_is_down(
    pool: ThreadPoolExecutor,
) -> None:
    first = response(200, [], Link='<?cursor=b>; rel="next"')
    with (
        odd_service(first, error(503, Retry_After=600)) as service,
        Client(KEY, f"{service.url}/v1") as client,
    ):
        stream = client.events.follow()
        seen = pool.submit(list, stream)
        while len(service.asked) < 2:
            time.sleep(0.01)
        time.sleep(0.1)
        stream.close()
        assert outcome(seen) == []


def test_another_task_ends_a_stream_that_waits_for_a_service_that_is_down() -> None:
    first = response(200, [], Link='<?cursor=b>; rel="next"')

    async def run(url: str) -> None:
        async with AsyncClient(KEY, f"{url}/v1") as client:
            stream = client.events.follow()
            following = asyncio.create_task(anext(stream, None))
            while len(service.asked) < 2:  # noqa: ASYNC110 - the service has no event for it
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.1)
            await stream.aclose()
            assert await asyncio.wait_for(following, PROMPT) is None

    with odd_service(first, error(503, Retry_After=600)) as service:
        asyncio.run(run(service.url))


# Clients


@pytest.mark.parametrize(
    "use",
    [
        lambda client: client.pets.get(7),
        lambda client: client.pets.create(name="Bella", category_id=1),
        lambda client: client.orders.cancel.raw(3),
        lambda client: list(client.pets.list()),
        lambda client: next(client.events.follow()),
        lambda client: client.with_options(timeout=1).pets.get(7),
    ],
)
def test_a_closed_client_refuses(use: Callable[[Client], Any]) -> None:
    with Client(KEY, "http://127.0.0.1:1/v1") as client:
        pass
    with pytest.raises(errors.ClientClosed, match="the client is closed"):
        use(client)


@pytest.mark.parametrize(
    "use",
    [
        lambda client: client.pets.get(7),
        lambda client: client.pets.create.raw(name="Bella", category_id=1),
        lambda client: anext(client.pets.list()),
        lambda client: anext(client.events.follow()),
    ],
)
def test_a_closed_async_client_refuses(use: Callable[[AsyncClient], Any]) -> None:
    async def run() -> None:
        async with AsyncClient(KEY, "http://127.0.0.1:1/v1") as client:
            pass
        with pytest.raises(errors.ClientClosed, match="the client is closed"):
            await use(client)

    asyncio.run(run())


def test_closing_a_client_ends_the_streams_of_other_threads_with_an_error(
    pool: ThreadPoolExecutor,
) -> None:
    with quiet_service() as (url, waits):
        client = Client(KEY, url)
        seen = pool.submit(list, client.events.follow())
        assert waits()
        client.close()
        with pytest.raises(errors.ClientClosed):
            outcome(seen)


def test_closing_a_client_leaves_the_outcome_of_a_post_under_way_unknown(
    pool: ThreadPoolExecutor,
) -> None:
    with quiet_service() as (url, waits):
        client = Client(KEY, url)
        made = pool.submit(client.pets.create, name="Bella", category_id=1)
        assert waits()
        client.close()
        with pytest.raises(OutcomeUnknown, match="unknown: the client is closed") as raised:
            outcome(made)
    assert isinstance(raised.value.__cause__, errors.ClientClosed)
    assert raised.value.idempotency_key


def test_closing_an_async_client_ends_the_requests_of_other_tasks() -> None:
    async def run(url: str, waits: Callable[[], bool]) -> None:
        client = AsyncClient(KEY, url)
        made = asyncio.create_task(_create(client))
        assert await asyncio.to_thread(waits)
        await client.close()
        with pytest.raises(OutcomeUnknown, match="unknown: the client is closed"):
            await asyncio.wait_for(made, PROMPT)

    async def _create(client: AsyncClient) -> None:
        await client.pets.create(name="Bella", category_id=1)

    with quiet_service() as (url, waits):
        asyncio.run(run(url, waits))


@pytest.mark.parametrize("away", [error(429, Retry_After=100), error(503, Retry_After=100)])
def test_closing_a_client_ends_the_waits_of_other_threads(
    pool: ThreadPoolExecutor, away: bytes
) -> None:
    with odd_service(away) as service:
        client = Client(KEY, f"{service.url}/v1")
        got = pool.submit(client.pets.get, 7)
        while not service.asked:
            time.sleep(0.01)
        time.sleep(0.1)
        client.close()
        with pytest.raises(errors.ClientClosed):
            outcome(got)


FORK = """
import os, sys, threading
from petstore_client import Client, OutcomeUnknown

client = Client("key", sys.argv[1], max_retries=0)
def create():
    try:
        client.pets.create(name="Bella", category_id=1)
    except OutcomeUnknown:
        pass
thread = threading.Thread(target=create)
thread.start()
sys.stdin.readline()  # the request is at the service
if os.fork() == 0:
    client.close()
    os._exit(0)
os.wait()
thread.join(0.5)
if not thread.is_alive():
    sys.exit("the child has ended the request of its parent")
client.close()
"""


def test_a_forked_process_that_closes_its_client_leaves_the_requests_of_its_parent_alone() -> None:
    with quiet_service() as (url, waits):
        command = [sys.executable, "-c", FORK, url]
        with subprocess.Popen(command, stdin=subprocess.PIPE, text=True) as process:
            assert waits()
            process.communicate("\n", timeout=60)
    assert process.returncode == 0


@each_face
def test_a_client_with_options_is_closed_with_the_other_one(face: Face) -> None:
    def use(client: Any) -> Any:
        other = client.with_options(timeout=1)
        if isinstance(client, Client):
            other.close()
            return client.pets.get(7)

        async def close_and_get() -> Any:
            await other.close()
            return await client.pets.get(7)

        return close_and_get()

    with pytest.raises(errors.ClientClosed):
        face("http://127.0.0.1:1", use, SleepingClock())


def test_what_goes_on_is_interrupted_once_and_never_after_it_has_ended() -> None:
    calls: list[str] = []
    outer = Lifetime()
    inner = Lifetime(outer)
    with inner.interruptible(lambda: calls.append("early")):
        pass
    with inner.interruptible(lambda: calls.append("inner")):
        inner.end()
    with outer.interruptible(lambda: calls.append("outer")):
        assert not outer.is_over
        outer.end()
    with outer.interruptible(lambda: calls.append("late")):
        pass
    assert calls == ["inner", "outer", "late"]
