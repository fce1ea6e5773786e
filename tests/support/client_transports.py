"""Transports of the client library to the service in this process: slow, and losing responses."""

import asyncio
import json
import random
from collections import Counter
from http import HTTPStatus

import httpx2

from support.bare_app import fields
from support.service import Service
from support.virtual_time import VirtualTime


class SlowService:
    """Hands requests to a service, each on its way for up to ``seconds``, and back.

    Of 20 requests it loses one, and of as many the response. ``outcomes`` counts the responses by
    their code, ``ok`` for successes.
    """

    def __init__(self, service: Service, clock: VirtualTime, seconds: float = 0) -> None:
        self.clock = clock
        self.loop = asyncio.get_running_loop()
        self.outcomes: Counter[str] = Counter()
        self._service = service
        self._seconds = seconds
        self._random = random.Random(7)  # noqa: S311 - the same at each run

    def travel(self) -> float:
        """Return how long a request is under way, in one direction."""
        return self._random.random() * self._seconds

    async def call(self, request: httpx2.Request) -> httpx2.Response:
        self._lose(httpx2.ConnectError)
        headers = [(name.lower(), value) for name, value in request.headers.raw]
        response = await self._service.call(
            request.method, request.url.raw_path, headers, request.content, b""
        )
        content = response.body if response.status >= HTTPStatus.BAD_REQUEST else b'{"code": "ok"}'
        self.outcomes[json.loads(content)["code"]] += 1
        self._lose(httpx2.ReadError)
        return httpx2.Response(response.status, headers=fields(response), content=response.body)

    def _lose(self, error: type[httpx2.NetworkError]) -> None:
        if self._random.random() < 1 / 20:
            msg = "lost"
            raise error(msg)


class TaskTransport(httpx2.AsyncBaseTransport):
    """For the tasks of the loop of the service."""

    def __init__(self, service: SlowService) -> None:
        self._service = service

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        await self._service.clock.pause(self._service.travel())
        response = await self._service.call(request)
        await self._service.clock.pause(self._service.travel())
        return response


class ThreadTransport(httpx2.BaseTransport):
    """For threads beside the loop of the service."""

    def __init__(self, service: SlowService) -> None:
        self._service = service

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        self._service.clock.sleep(self._service.travel())
        call = self._service.call(request)
        response = asyncio.run_coroutine_threadsafe(call, self._service.loop).result()
        self._service.clock.sleep(self._service.travel())
        return response
