"""Threads that call a service until a block ends, and note what was acknowledged."""

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any, Self
from uuid import uuid4

import httpx

from support.process import ServerProcess
from support.waiting import within


class Callers:
    """So many threads that run ``call``; it returns once ``stop`` is set."""

    def __init__(self, call: Callable[[int], None], count: int) -> None:
        self.stop = threading.Event()
        self._threads = [threading.Thread(target=call, args=(number,)) for number in range(count)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        for thread in self._threads:
            thread.join()


class Customers(Callers):
    """Four threads that add, order and read pets until the block ends or the service is gone.

    Every other thread makes a connection for each request. ``pets`` and ``orders`` are those that
    were acknowledged. No response, within 20 seconds on a busy machine or because the service is
    gone, counts as status 0. Each change has an Idempotency-Key of its own, by which its path and
    body are in ``sent``, and the response that acknowledged it in ``responses``.
    """

    def __init__(
        self,
        server: ServerProcess,
        token: str,
        transport: Callable[[], httpx.BaseTransport] = httpx.HTTPTransport,
        pause: float = 0,
    ) -> None:
        self.pets: list[int] = []
        self.orders: list[int] = []
        self.sent: dict[str, tuple[str, dict[str, Any]]] = {}
        self.responses: dict[str, bytes] = {}
        self.statuses: Counter[int] = Counter()
        self.reads: Counter[int] = Counter()
        self.without_retry_after = 0
        self._url = f"{server.url}/v1"
        self._headers = {"Authorization": f"Bearer {token}"}
        self._transport = transport
        self._pause = pause
        super().__init__(self._go_on, 4)

    def order_more(self, count: int) -> None:
        enough = len(self.orders) + count
        assert within(30, lambda: len(self.orders) >= enough), self.statuses

    def _go_on(self, number: int) -> None:
        headers = self._headers | {"Connection": ("keep-alive", "close")[number % 2]}
        with httpx.Client(
            base_url=self._url, headers=headers, timeout=20, transport=self._transport()
        ) as client:
            while not self.stop.wait(self._pause):
                try:
                    self._buy(client)
                except httpx.TransportError as error:
                    self.statuses[0] += 1
                    if not isinstance(error, httpx.TimeoutException):
                        return

    def _buy(self, client: httpx.Client) -> None:
        new = {"name": "Rex", "categoryId": 1, "status": "available"}
        for pet in self._made(client, "/pets", new):
            self.pets.append(pet)
            self.orders += self._made(client, "/store/orders", {"petId": pet})
            self.reads[client.get("/pets", params={"id": pet}).status_code] += 1

    def _made(self, client: httpx.Client, path: str, body: dict[str, Any]) -> list[int]:
        self.sent[key := str(uuid4())] = (path, body)
        response = client.post(path, json=body, headers={"Idempotency-Key": key})
        self.statuses[response.status_code] += 1
        if response.status_code == 503:
            self.without_retry_after += "Retry-After" not in response.headers
        if response.status_code != 201:
            return []
        self.responses[key] = response.content
        return [response.json()["id"]]
