"""Agents at work: a store on a socket of this loop, and the client of the official SDK."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp.client import Client
from mcp.types import TextContent

from petstore.agents.server import agent_server
from petstore.http.messages import Respond
from petstore.http.server import ConnectionLimits, HttpServer
from petstore.keys.model import DEFAULT_SCOPES
from petstore.server.listeners import listen
from petstore_client import AsyncClient
from support.service import Service


@asynccontextmanager
async def listening(respond: Respond) -> AsyncIterator[str]:
    with listen("127.0.0.1", 0) as listener:
        server = HttpServer(respond, listener, ConnectionLimits(100, 100))
        serving = asyncio.ensure_future(server.serve())
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.stop()
            await serving


class Agent:
    def __init__(self, client: Client) -> None:
        self.client = client

    async def tools(self) -> list[str]:
        return [tool.name for tool in (await self.client.list_tools()).tools]

    async def call(self, tool: str, **arguments: Any) -> Any:
        result = await self.client.call_tool(tool, arguments)
        assert not result.is_error, result.content
        return result.structured_content

    async def fail(self, tool: str, **arguments: Any) -> str:
        result = await self.client.call_tool(tool, arguments)
        (content,) = result.content
        assert result.is_error
        assert isinstance(content, TextContent)
        return content.text


@asynccontextmanager
async def agent(url: str, key: str, *, writes: bool = False) -> AsyncIterator[Agent]:
    """Give an agent in the store at ``url``, without a transport between."""
    async with AsyncClient(key, f"{url}/v1", timeout=10, max_wait=5) as of_key:
        server = agent_server(of_key, writes=writes)
        async with Client(server) as client:
            yield Agent(client)


@asynccontextmanager
async def agent_in(service: Service, *scopes: str, writes: bool = False) -> AsyncIterator[Agent]:
    """Give an agent in a store, with a key of these scopes, or of those of any key."""
    key = await service.issue(scopes=frozenset(scopes or DEFAULT_SCOPES))
    async with listening(service.app) as url, agent(url, key.token, writes=writes) as made:
        yield made
