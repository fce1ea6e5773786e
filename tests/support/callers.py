"""Threads that call a service until a block ends, and note what was acknowledged."""

import threading
from collections import Counter
from collections.abc import Callable
from typing import Self

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

    ``pets`` and ``orders`` are those that were acknowledged. No response, within 20 seconds on a
    busy machine or because the service is gone, counts as status 0.
    """

    def __init__(self, server: ServerProcess, token: str) -> None:
        self.pets: list[int] = []
        self.orders: list[int] = []
        self.statuses: Counter[int] = Counter()
        self.reads: Counter[int] = Counter()
        self.without_retry_after = 0
        self._url = f"{server.url}/v1"
        self._headers = {"Authorization": f"Bearer {token}"}
        super().__init__(self._go_on, 4)

    def order_more(self, count: int) -> None:
        enough = len(self.orders) + count
        assert within(30, lambda: len(self.orders) >= enough), self.statuses

    def _go_on(self, _: int) -> None:
        with httpx.Client(base_url=self._url, headers=self._headers, timeout=20) as client:
            while not self.stop.is_set():
                try:
                    self._buy(client)
                except httpx.TransportError as error:
                    self.statuses[0] += 1
                    if not isinstance(error, httpx.TimeoutException):
                        return

    def _buy(self, client: httpx.Client) -> None:
        new = {"name": "Rex", "categoryId": 1, "status": "available"}
        for pet in self._made(client.post("/pets", json=new)):
            self.pets.append(pet)
            self.orders += self._made(client.post("/store/orders", json={"petId": pet}))
            self.reads[client.get("/pets", params={"id": pet}).status_code] += 1

    def _made(self, response: httpx.Response) -> list[int]:
        self.statuses[response.status_code] += 1
        if response.status_code == 503:
            self.without_retry_after += "Retry-After" not in response.headers
        return [response.json()["id"]] if response.status_code == 201 else []
