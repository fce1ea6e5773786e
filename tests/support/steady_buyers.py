"""Clients that add and order pets without pause, and record acknowledged changes."""

from collections import Counter

import httpx

from support.callers import Callers
from support.process import ServerProcess
from support.waiting import within

_THREADS = 4
_LONGEST_WAIT = 20


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
