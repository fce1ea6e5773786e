"""Requests that are sent with one key."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import httpx

from support.service import Service

Send: TypeAlias = Callable[..., Awaitable[httpx.Response]]
"""Takes a method, a path under ``/v1`` and options of httpx."""


async def sender(service: Service, **wanted: Any) -> Send:
    """Return what sends requests with a key without limits, such as is ``wanted``."""
    key = await service.issue(**wanted)

    async def send(method: str, path: str, **options: Any) -> httpx.Response:
        return await service.request(method, f"/v1{path}", key.token, **options)

    return send
