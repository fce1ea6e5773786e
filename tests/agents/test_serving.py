"""MCP over HTTP, and those who should get nothing from it."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from support.agents import agent_over_http, listening, served_agents
from support.service import Service, running_service
from support.waiting import eventually

pytestmark = pytest.mark.anyio

USAGE = {"name": "get_usage", "arguments": {}}
CALL: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": USAGE}
HEAD = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
HALF = f"{HEAD}Authorization: Bearer a-key\r\nContent-Length: 9\r\n\r\n{{"


@dataclass
class Callers:
    """Those who send requests to an MCP server for the store of a service."""

    service: Service
    url: str
    http: httpx.AsyncClient
    key: str

    async def send(
        self, key: str, body: Any = CALL, *, method: str = "POST", **fields: str | bytes
    ) -> httpx.Response:
        """Send a message with a key; the names of fields have _ for -."""
        headers: Any = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
        headers |= {name.replace("_", "-"): value for name, value in fields.items()}
        content = {"content": body} if isinstance(body, bytes) else {"json": body}
        return await self.http.request(method, f"{self.url}/mcp", headers=headers, **content)

    async def begin(self, sent: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Return a connection on which a client has sent this, and waits."""
        host, port = self.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(sent.encode())
        return reader, writer


@pytest.fixture(scope="module")
async def callers(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Callers]:
    store = tmp_path_factory.mktemp("store") / "petstore.db"
    trusting: Any = {"trusted_proxy": ("127.0.0.1",), "anonymous_per_minute": 3}
    async with (
        running_service(store, **trusting) as service,
        listening(service.app) as store_url,
        served_agents(store_url, "MCP.shop.example") as url,
        httpx.AsyncClient() as http,
    ):
        yield Callers(service, url, http, (await service.issue()).token)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_an_agent_works_in_both_eras_of_the_protocol(callers: Callers, mode: str) -> None:
    key = await callers.service.issue(scopes=frozenset({"pets:read"}))
    async with agent_over_http(callers.url, key.token, mode) as agent:
        assert "list_pets" in await agent.tools()
        assert (await agent.call("list_pets"))["pets"] == []
        assert (await agent.call("get_usage"))["scopes"] == ["pets:read"]


@pytest.mark.parametrize(
    ("status", "fields"),
    [
        (401, {"Authorization": ""}),
        (401, {"Authorization": "Basic cGV0OnN0b3Jl"}),
        (401, {"Authorization": "Bearer a key"}),
        (403, {"Origin": "http://127.0.0.1:3000"}),
        (403, {"Origin": "null"}),
        (403, {"Host": "evil.example"}),
        (403, {"Host": "127.0.0.1.evil.example:8765"}),
        (405, {"method": "GET"}),
        (405, {"method": "DELETE"}),
        (405, {"method": "HEAD"}),
        (415, {"Content-Type": "text/plain"}),
        (400, {"body": b"{"}),
        (400, {"body": b"[" * 1000}),
        (400, {"body": b'[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]'}),
        (400, {"body": b'{"jsonrpc":"2.0","id":1,"method":"\xff"}'}),
        (413, {"body": b"[" * 2001}),
        (413, {"body": b'{"jsonrpc":"2.0","id":1,"params":{%b"":0}}' % (b'"":0,' * 1000)}),
        (413, {"body": b" " * (256 * 1024 + 1)}),
        (431, {"X": "x" * 70_000}),
        (202, {"body": b'{"jsonrpc":"2.0","method":"notifications/initialized"}'}),
        (200, {"Host": "mcp.shop.example:8443"}),
        (200, {"Host": "LOCALHOST"}),
        (200, {"Accept": "text/html"}),
    ],
)
async def test_a_request_is_a_message_with_a_key_and_comes_from_no_web_page(
    callers: Callers, status: int, fields: dict[str, Any]
) -> None:
    sent = await callers.send(callers.key, **fields)
    assert sent.status_code == status
    assert "access-control-allow-origin" not in sent.headers


async def test_an_error_links_to_the_documentation_of_the_store() -> None:
    async with served_agents("http://müller.example") as url, httpx.AsyncClient() as http:
        sent = await http.get(f"{url}/mcp")
    assert sent.headers["Link"].startswith("<http://m%C3%BCller.example/docs/errors#method_not")


async def test_callers_never_act_with_the_key_of_another_one(callers: Callers) -> None:
    keys = [await callers.service.issue(per_minute=limit) for limit in range(100, 108)]

    async def limit_seen(token: str) -> int:
        sent = await callers.send(token, Mcp_Session_Id="the-same")
        found: int = sent.json()["result"]["structuredContent"]["minute"]["limit"]
        return found

    seen = await asyncio.gather(*(limit_seen(key.token) for key in keys * 5))
    assert seen == [*range(100, 108)] * 5


async def test_the_store_sees_the_address_of_the_caller(callers: Callers) -> None:
    for number in range(4):
        sent = await callers.send(f"made-up-{number}", X_Forwarded_For="192.0.2.1")
    assert "429 rate_limit_exceeded" in sent.text
    new = await callers.service.issue()
    sent = await callers.send(new.token, X_Forwarded_For="192.0.2.2")
    assert sent.json()["result"]["isError"] is False
    bound = await callers.service.issue(allowed_networks=("192.0.2.3",))
    for address, told in (("192.0.2.3", '"plan'), ("192.0.2.4", "403 ")):
        assert told in (await callers.send(bound.token, X_Forwarded_For=address)).text


async def test_a_body_arrives_in_time(callers: Callers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("petstore.agents.server._ARRIVAL_SECONDS", 0.05)
    reader, writer = await callers.begin(HALF)
    assert (await reader.readline()).startswith(b"HTTP/1.1 408")
    writer.close()


async def test_an_address_has_64_requests_at_once(callers: Callers) -> None:
    begun = [await callers.begin(HALF) for _ in range(64)]

    async def is_refused() -> bool:
        return (await callers.send(callers.key)).status_code == 429

    await eventually(is_refused)
    assert (await callers.send(callers.key, X_Forwarded_For="192.0.2.5")).status_code == 200
    for _, writer in begun:
        writer.close()


async def test_a_call_ends_when_the_agent_leaves() -> None:
    """Else the next call of its key would wait for the store."""
    calls = 0

    async def silence(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal calls
        calls += 1
        await reader.read()  # until the connection ends
        writer.close()

    async with (
        await asyncio.start_server(silence, "127.0.0.1", 0) as store,
        served_agents(f"http://127.0.0.1:{store.sockets[0].getsockname()[1]}") as url,
        httpx.AsyncClient(headers={"Authorization": "Bearer a-key"}) as http,
    ):
        for _ in range(2):
            with pytest.raises(httpx.ReadTimeout):
                await http.post(f"{url}/mcp", json=CALL, timeout=httpx.Timeout(5, read=0.3))
    assert calls == 2
