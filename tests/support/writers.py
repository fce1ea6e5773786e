"""Clients that add pets without pause, and record acknowledged changes."""

import httpx

from support.callers import Callers
from support.process import ServerProcess

_THREADS = 4


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
