"""Threads that call a service until a block ends, and note what was acknowledged."""

import threading
from collections import Counter
from collections.abc import Callable
from typing import Self

import httpx

from support.process import ServerProcess
from support.waiting import within

_THREADS = 4
_LONGEST_WAIT = 20


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


class Writers(Callers):
    """Four threads that post to the service until it is gone, or the block ends.

    ``acknowledged`` has the ids of the pets that got 201.
    """

    def __init__(self, server: ServerProcess, token: str) -> None:
        self.acknowledged: list[int] = []
        self.unexpected: list[int] = []
        self._url = server.url
        self._headers = {"Authorization": f"Bearer {token}"}
        super().__init__(self._write, _THREADS)

    def _write(self, _: int) -> None:
        with httpx.Client(base_url=self._url, headers=self._headers) as client:
            while not self.stop.is_set():
                try:
                    response = client.post("/v1/pets", json={"name": "Rex", "categoryId": 1})
                except httpx.TransportError:
                    return
                if response.status_code == 201:
                    self.acknowledged.append(response.json()["id"])
                else:
                    self.unexpected.append(response.status_code)


class Buyers(Callers):
    """Threads that go on until the block ends, whatever responses they get.

    A response takes 20 seconds at most, on a busy machine; a slower one counts as status 0.
    """

    def __init__(self, server: ServerProcess, token: str) -> None:
        self.pets: list[int] = []
        self.orders: list[int] = []
        self.statuses: Counter[int] = Counter()
        self.reads: Counter[int] = Counter()
        self.without_retry_after = 0
        self._url = server.url
        self._headers = {"Authorization": f"Bearer {token}"}
        super().__init__(self._buy, _THREADS)

    def order_more(self, count: int) -> None:
        """Wait until so many more orders were acknowledged."""
        enough = len(self.orders) + count
        assert within(30, lambda: len(self.orders) >= enough), self.statuses

    def _buy(self, _: int) -> None:
        with httpx.Client(
            base_url=f"{self._url}/v1", headers=self._headers, timeout=_LONGEST_WAIT
        ) as client:
            while not self.stop.is_set():
                new = {"name": "Rex", "categoryId": 1, "status": "available"}
                pet = self._made(client, "/pets", new)
                if pet is None:
                    continue
                self.pets.append(pet)
                order = self._made(client, "/store/orders", {"petId": pet})
                if order is not None:
                    self.orders.append(order)
                self._read(client, pet)

    def _made(self, client: httpx.Client, path: str, new: dict[str, object]) -> int | None:
        try:
            response = client.post(path, json=new)
        except httpx.TimeoutException:
            self.statuses[0] += 1
            return None
        self.statuses[response.status_code] += 1
        if response.status_code == 503:
            self.without_retry_after += "Retry-After" not in response.headers
        made: int | None = response.json()["id"] if response.status_code == 201 else None
        return made

    def _read(self, client: httpx.Client, pet: int) -> None:
        try:
            self.reads[client.get("/pets", params={"id": pet}).status_code] += 1
        except httpx.TimeoutException:
            self.reads[0] += 1
