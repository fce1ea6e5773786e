"""Callers who add animals without pause, and remember what was acknowledged."""

import threading
from types import TracebackType
from typing import Self

import httpx

from support.process import ServerProcess


class Writers:
    """Four threads that post to the service until it is gone, or the block ends.

    The ids of what was answered with 201 are ``acknowledged``.
    """

    def __init__(self, server: ServerProcess, token: str) -> None:
        self.acknowledged: list[int] = []
        self.unexpected: list[int] = []
        self._url = server.url
        self._headers = {"Authorization": f"Bearer {token}"}
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._write) for _ in range(4)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _write(self) -> None:
        with httpx.Client(base_url=self._url, headers=self._headers) as client:
            while not self._stop.is_set():
                try:
                    answer = client.post("/v1/pets", json={"name": "Rex", "categoryId": 1})
                except httpx.TransportError:
                    return
                if answer.status_code == 201:
                    self.acknowledged.append(answer.json()["id"])
                else:
                    self.unexpected.append(answer.status_code)
