"""Waiting for what the background work of a service in this process does in its own time."""

import asyncio
from collections.abc import Callable

from support.service import Service


async def eventually(happened: Callable[[], object], seconds: float = 1) -> None:
    """Wait until ``happened`` comes true; fail if it does not within so many seconds."""
    async with asyncio.timeout(seconds):
        while not happened():  # noqa: ASYNC110 - what is waited for tells nobody
            await asyncio.sleep(0.005)


async def status_becomes(service: Service, token: str, status: int, path: str = "/v1/x") -> None:
    """Wait until ``service`` has seen a change to a key; fail if that takes a second."""
    async with asyncio.timeout(1):
        while (await service.request("GET", path, token)).status_code != status:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
