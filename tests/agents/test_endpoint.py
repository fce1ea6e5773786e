"""MCP over HTTP, and those who should get nothing from it."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import msgspec
import pytest
from mcp.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from petstore.agents.callers import Callers as KeyCallers
from petstore.agents.clients import Clients
from petstore.agents.endpoint import Endpoint
from petstore.clock import system_clock
from petstore.errors import InvalidKey, RateLimitExceeded, Unavailable
from petstore.limits.minutes import MinuteLimiter
from petstore.logs import RequestLine
from petstore.settings import Settings
from support.agents import USAGE_BODY, agent_over_http, listening, served_agents
from support.error_body import assert_error
from support.odd_service import SILENCE, error, odd_service, response
from support.process import free_port
from support.service import Service, running_service

pytestmark = pytest.mark.anyio

MODERN = "2026-07-28"
LIST: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
USAGE = {"name": "get_usage", "arguments": {}}
CALL: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": USAGE}
JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


class Callers:
    """Sends requests to an MCP server for the store of a service."""

    def __init__(
        self, service: Service, url: str, http: httpx.AsyncClient, key: str, log: list[RequestLine]
    ) -> None:
        self.service = service
        self.key = key
        self.log = log
        self.url = url
        self._http = http

    async def send(
        self, key: str | None, body: Any = LIST, *, method: str = "POST", **fields: str | bytes
    ) -> httpx.Response:
        """Send a message with a key; the names of fields have _ for -."""
        named = {name.replace("_", "-"): value for name, value in fields.items()}
        own = {} if key is None else {"Authorization": f"Bearer {key}"}
        headers: Any = {**JSON, **own, **named}
        content = {"content": body} if isinstance(body, bytes) else {"json": body}
        return await self._http.request(method, f"{self.url}/mcp", headers=headers, **content)


@pytest.fixture(scope="module")
async def callers(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Callers]:
    log: list[RequestLine] = []
    hosts = ("127.0.0.1", "localhost", "MCP.shop.example")
    async with (
        running_service(tmp_path_factory.mktemp("store") / "petstore.db") as service,
        listening(service.app) as store_url,
        served_agents(store_url, hosts, note=log.append) as url,
        httpx.AsyncClient() as http,
    ):
        yield Callers(service, url, http, (await service.issue()).token, log)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_an_agent_works_with_its_own_key_in_both_eras_of_the_protocol(
    callers: Callers, mode: str
) -> None:
    key = await callers.service.issue(scopes=frozenset({"pets:read"}))
    async with agent_over_http(callers.url, key.token, mode) as agent:
        assert "list_pets" in await agent.tools()
        assert (await agent.call("list_pets"))["pets"] == []
        assert (await agent.call("get_usage"))["scopes"] == ["pets:read"]


@pytest.mark.parametrize(
    ("authorization", "code"),
    [
        (None, "missing_api_key"),
        ("Basic cGV0OnN0b3Jl", "missing_api_key"),
        ("Bearer", "missing_api_key"),
        ("Bearer a key", "invalid_api_key"),
        (b"Bearer k\xe9y", "invalid_api_key"),
    ],
)
async def test_a_request_without_a_key_is_refused(
    callers: Callers, authorization: str | bytes | None, code: str
) -> None:
    fields: dict[str, Any] = {} if authorization is None else {"Authorization": authorization}
    response = await callers.send(None, **fields)
    assert_error(response, 401, code)
    assert response.headers["WWW-Authenticate"].startswith('Bearer realm="petstore"')


async def test_callers_never_act_with_the_key_of_another_one(callers: Callers) -> None:
    keys = [await callers.service.issue(per_minute=limit) for limit in range(100, 108)]

    async def limit_seen(token: str) -> int:
        sent = await callers.send(token, CALL, Mcp_Session_Id="the-same")
        assert "Mcp-Session-Id" not in sent.headers
        found: int = sent.json()["result"]["structuredContent"]["minute"]["limit"]
        return found

    seen = await asyncio.gather(*(limit_seen(key.token) for key in keys * 5))
    assert seen == [*range(100, 108)] * 5


async def test_one_caller_does_not_wait_for_the_limit_of_another_one(callers: Callers) -> None:
    thief = await callers.service.issue(per_minute=1)
    owner = await callers.service.issue()
    call = CALL | {"params": {"name": "list_pets", "arguments": {}}}
    for _ in range(3):
        refused = await callers.send(thief.token, call)
    assert "Call no tool for 60 seconds" in refused.text
    assert (await callers.send(owner.token, call)).json()["result"]["isError"] is False


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "http://127.0.0.1:3000"}, 403),
        ({"Origin": "null"}, 403),
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1.evil.example:8765"}, 421),
        ({"Content-Type": "text/plain"}, 400),
        ({"Host": "mcp.shop.example"}, 200),
        ({"Host": "mcp.shop.example:8443"}, 200),
        ({"Host": "LOCALHOST:8765"}, 200),
    ],
)
async def test_a_web_page_cannot_use_it(
    callers: Callers, fields: dict[str, str], status: int
) -> None:
    key = await callers.service.issue()
    for version in ({}, {"MCP-Protocol-Version": MODERN}):
        sent = await callers.send(key.token, **fields, **version)
        assert sent.status_code == (400 if version and status == 200 else status)
        assert "access-control-allow-origin" not in sent.headers


async def test_another_host_is_refused_first_and_told_of_the_option(callers: Callers) -> None:
    for key, fields in ((None, {}), (callers.key, {"Content-Type": "text/plain"})):
        response = await callers.send(key, Host="evil.example", **fields)
        assert_error(response, 421, "misdirected_request")
        assert "--allowed-host" in response.json()["message"]
        assert callers.log[-1].code == "misdirected_request"


@pytest.mark.parametrize("method", ["GET", "DELETE", "OPTIONS", "HEAD"])
async def test_there_are_neither_streams_nor_sessions(callers: Callers, method: str) -> None:
    response = await callers.send(callers.key, b"", method=method)
    assert (response.status_code, response.headers["Allow"]) == (405, "POST")


async def test_there_is_nothing_at_another_path(callers: Callers) -> None:
    async with httpx.AsyncClient() as http:
        assert_error(await http.post(callers.url), 404, "not_found")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"[" * 100_000, 400),
        (b"[%b]" % b",".join([b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'] * 2), 400),
        (b'{"jsonrpc":"2.0","id":%b,"method":"tools/list"}' % (b"9" * 6000), 400),
        (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', 400),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":NaN}}', 400),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"\\ud800"}}', 400),
        (b" " * (512 * 1024 + 1), 413),
    ],
    ids=[
        "half",
        "nested",
        "a batch",
        "a long number",
        "not UTF-8",
        "not a number",
        "half a character",
        "too large",
    ],
)
async def test_a_message_that_is_none_is_refused(
    callers: Callers, body: bytes, status: int
) -> None:
    assert (await callers.send(callers.key, body)).status_code == status


def modern(method: str, params: str) -> tuple[bytes, dict[str, str]]:
    """Return a message of the era without handshakes, and its fields."""
    meta = (
        f'"_meta":{{"io.modelcontextprotocol/protocolVersion":"{MODERN}",'
        '"io.modelcontextprotocol/clientCapabilities":{}}'
    )
    body = f'{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params},{meta}}}}}'
    return body.encode(), {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}


@pytest.mark.parametrize("depth", [300, 900])
async def test_nested_arguments_are_refused(callers: Callers, depth: int) -> None:
    params = f'"name":"list_pets","arguments":{{"name":{"[" * depth}{"]" * depth}}}'
    body, fields = modern("tools/call", params)
    sent = await callers.send(callers.key, body, **fields, Mcp_Name="list_pets")
    assert sent.json()["result"]["isError"] is True
    assert len(sent.content) < 1000


async def test_the_items_of_a_list_that_is_too_long_are_not_looked_at(callers: Callers) -> None:
    """A quarter of a million wrong ones took the event loop two seconds."""
    params = f'"name":"list_pets","arguments":{{"id":[{",".join(["null"] * 101)}]}}'
    body, fields = modern("tools/call", params)
    sent = await callers.send(callers.key, body, **fields, Mcp_Name="list_pets")
    (content,) = sent.json()["result"]["content"]
    assert content["text"].splitlines()[0] == "id: expected at most 100 items"


async def test_nobody_can_listen_for_ever(callers: Callers) -> None:
    body, fields = modern("subscriptions/listen", '"notifications":{"toolsListChanged":true}')
    sent = await callers.send(callers.key, body, **fields)
    assert sent.json()["error"]["message"] == "Method not found"


async def test_a_notification_is_accepted_without_an_answer(callers: Callers) -> None:
    sent = await callers.send(
        callers.key, {"jsonrpc": "2.0", "method": "notifications/initialized"}
    )
    assert (sent.status_code, sent.content) == (202, b"")


async def test_what_is_no_request_at_all_is_refused_with_the_error_body(callers: Callers) -> None:
    host, port = callers.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"POST /mcp\r\n\r\n")
    assert (await reader.read()).startswith(b"HTTP/1.1 400 Bad Request\r\n")
    writer.close()


@pytest.mark.parametrize("sent_id", ["null", "true", "1.5", "1.0", "[]", "{}"])
async def test_a_request_whose_id_is_neither_text_nor_integer_is_refused(
    callers: Callers, sent_id: str
) -> None:
    """The SDK would take it for a notification, and its sender would wait for ever."""
    for version in ({}, {"MCP-Protocol-Version": MODERN}):
        body = f'{{"jsonrpc":"2.0","id":{sent_id},"method":"ping"}}'.encode()
        sent = await callers.send(callers.key, body, **version)
        assert sent.status_code == 400
        error = {"code": -32600, "message": "id: expected a string or an integer"}
        assert sent.json() == {"jsonrpc": "2.0", "id": None, "error": error}


HALF = (
    "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n"
    "{more}Content-Length: 9\r\n\r\n{{"
)


async def answer_to_half(url: str, key: str, more: str = "") -> bytes:
    """Return what a client gets that sends the first byte of a body, and waits."""
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(HALF.format(key=key, more=more).encode())
    try:
        return await reader.read()
    finally:
        writer.close()


async def test_half_a_body_with_a_valid_key_is_refused_in_time(callers: Callers) -> None:
    settings = Settings(body_timeout=0.01)
    async with (
        listening(callers.service.app) as store_url,
        served_agents(store_url, settings=settings) as url,
    ):
        answer = await answer_to_half(url, callers.key)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"connection: close" in answer


async def test_without_a_valid_key_nobody_holds_a_connection_with_a_body(callers: Callers) -> None:
    """Behind a proxy that passes bodies on as they arrive, nobody else would get one."""
    settings = Settings(body_timeout=3600, max_connections=1)
    async with (
        listening(callers.service.app) as store_url,
        served_agents(store_url, settings=settings) as url,
        httpx.AsyncClient() as http,
    ):
        for _ in range(3):
            answer = await answer_to_half(url, "no-key")
            assert answer.startswith(b"HTTP/1.1 401 ")
            assert b"connection: close" in answer
        headers = JSON | {"Authorization": f"Bearer {callers.key}"}
        assert (await http.post(f"{url}/mcp", json=LIST, headers=headers)).status_code == 200


async def test_nor_while_the_store_does_not_respond() -> None:
    settings = Settings(body_timeout=3600)
    async with served_agents(f"http://127.0.0.1:{free_port()}", settings=settings) as url:
        answer = await answer_to_half(url, "a-key")
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert b"the store cannot check the key now" in answer


async def test_an_address_that_sends_many_invalid_keys_is_limited_alone(callers: Callers) -> None:
    settings = Settings(anonymous_per_minute=2, trusted_proxy=("127.0.0.1",))
    async with (
        listening(callers.service.app) as store_url,
        served_agents(store_url, settings=settings) as url,
    ):
        of_attacker, of_other = "X-Forwarded-For: 192.0.2.1\r\n", "X-Forwarded-For: 192.0.2.2\r\n"
        codes = [(await answer_to_half(url, f"k{n}", of_attacker))[9:12] for n in range(3)]
        assert codes == [b"401", b"401", b"429"]
        assert (await answer_to_half(url, "k3", of_other))[9:12] == b"401"


async def test_the_store_is_asked_about_a_key_once_a_minute() -> None:
    with odd_service(response(200, USAGE_BODY), error(401), error(401)) as store:
        keys = KeyCallers(Clients(f"{store.url}/v1"), MinuteLimiter(system_clock, 1, 10))

        async def admit(key: str) -> None:
            await keys.admit(key, "192.0.2.1", has_body=False)

        for _ in range(3):
            await admit("a-key")
        assert len(store.asked) == 1
        with pytest.raises(InvalidKey):
            await admit("no-key")
        await keys.forget()
        with pytest.raises(InvalidKey):  # it has ended; so far it did not count for its address
            await admit("a-key")
        with pytest.raises(RateLimitExceeded):
            await admit("a-key")
        assert len(store.asked) == 3


async def test_each_request_has_a_line_in_the_log_without_key_and_arguments(
    callers: Callers,
) -> None:
    secret = {"name": "a secret name", "status": "nothing"}
    calls: dict[str, Any] = {"get_usage": {}, "list_pets": secret, "get_pet": {"petId": 404}}
    callers.log.clear()
    for tool, arguments in calls.items():
        message = CALL | {"params": {"name": tool, "arguments": arguments}}
        sent = await callers.send(callers.key, message, X_Request_Id=f"for-{tool}")
        assert sent.headers["X-Request-Id"] == f"for-{tool}"
    await callers.send(callers.key)
    await callers.send(callers.key, CALL | {"params": {"name": "a\u001b[2J", "arguments": {}}})
    await callers.send("no-key")
    await callers.send(callers.key, method="GET")
    lines = [
        (line.method, line.route, line.operation, line.status, line.code) for line in callers.log
    ]
    assert lines == [
        ("POST", "/mcp", "get_usage", 200, None),
        ("POST", "/mcp", "list_pets", 200, "invalid_request"),
        ("POST", "/mcp", "get_pet", 200, "not_found"),
        ("POST", "/mcp", "tools/list", 200, None),
        ("POST", "/mcp", None, 200, None),
        ("POST", "/mcp", None, 401, "invalid_api_key"),
        ("GET", "/mcp", None, 405, "method_not_allowed"),
    ]
    assert [line.request for line in callers.log[:3]] == [f"for-{tool}" for tool in calls]
    assert all(line.client == "127.0.0.1" and line.milliseconds > 0 for line in callers.log)
    told = msgspec.json.encode(callers.log)
    assert b"secret" not in told
    assert callers.key.encode() not in told


async def test_the_store_logs_a_call_by_the_same_id() -> None:
    told = {"name": "get_usage", "arguments": {}}
    with odd_service(response(200, USAGE_BODY), response(200, USAGE_BODY)) as store:
        async with served_agents(store.url) as url, httpx.AsyncClient() as http:
            headers = JSON | {"Authorization": "Bearer a-key", "X-Request-Id": "the-id"}
            await http.post(f"{url}/mcp", json=CALL | {"params": told}, headers=headers)
        assert store.asked[-1].fields["x-request-id"] == "the-id"


async def test_a_fault_is_logged_and_tells_the_caller_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    manager = StreamableHTTPSessionManager(Server[Any]("petstore"), stateless=True)  # not running
    headers = JSON | {"Authorization": "Bearer a-key"}
    clients = Clients(f"http://127.0.0.1:{free_port()}/v1")
    admitted = KeyCallers(clients, MinuteLimiter(system_clock, 1, 1))
    endpoint = Endpoint(
        manager, admitted, ["127.0.0.1"], Settings(), lambda _: None, "http://shop.example"
    )
    async with listening(endpoint) as url, httpx.AsyncClient(headers=headers) as http:
        response = await http.post(f"{url}/mcp", json=LIST)
    assert_error(response, 500, "internal_error")
    assert "Task group" not in response.text
    assert "Task group is not initialized" in caplog.text
    assert "a-key" not in caplog.text


async def test_no_new_key_passes_while_the_store_refuses_to_look_up_more() -> None:
    with odd_service(error(429, Retry_After=60), SILENCE) as store:
        keys = KeyCallers(Clients(f"{store.url}/v1"), MinuteLimiter(system_clock, 1, 10))
        for message in ("the store looks up no more", "the limit of this address"):
            with pytest.raises(RateLimitExceeded, match=message):
                await keys.admit("no-key", "192.0.2.1", has_body=True)
        assert len(store.asked) == 1


async def test_a_silent_store_is_given_up_however_many_keys_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("petstore.agents.callers._TIMEOUT_SECONDS", 0.1)
    with odd_service(SILENCE, SILENCE) as store:
        keys = KeyCallers(Clients(f"{store.url}/v1"), MinuteLimiter(system_clock, 100, 10))
        outcomes = await asyncio.gather(
            *(keys.admit(f"key-{number}", "192.0.2.1", has_body=False) for number in range(20)),
            return_exceptions=True,
        )
    assert {type(outcome) for outcome in outcomes} == {Unavailable}
