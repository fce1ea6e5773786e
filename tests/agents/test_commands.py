"""``petstore mcp``, with the client of the official SDK."""

import os
import sys
from pathlib import Path
from subprocess import PIPE, Popen

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from petstore import agents
from support.agents import Agent
from support.process import ServerProcess
from support.shop import Shop

PROGRAM = str(Path(sys.executable).parent / "petstore")


@pytest.mark.anyio
async def test_an_agent_starts_it_and_works_on_standard_input_and_output(
    server: ServerProcess, token: str, tmp_path: Path
) -> None:
    environment = {"PETSTORE_KEY": token, "PETSTORE_URL": server.url}
    coverage = {name: value for name, value in os.environ.items() if name.startswith("COV")}
    program = StdioServerParameters(
        command=PROGRAM, args=["mcp", "--write"], env=environment | coverage
    )
    with (tmp_path / "err").open("w+") as errors:
        async with Client(stdio_client(program, errlog=errors)) as client:
            agent = Agent(client)
            assert "add_pets" in await agent.tools()
            added = await agent.call("add_pets", pets=[{"name": "Bo", "categoryId": 1}])
            pet = await agent.call("get_pet", petId=added["pets"][0]["id"])
        assert pet["pet"] == added["pets"][0]
        errors.seek(0)
        assert errors.read() == ""


def test_it_ends_quietly_if_the_agent_no_longer_reads(server: ServerProcess, token: str) -> None:
    environment = {**os.environ, "PETSTORE_KEY": token, "PETSTORE_URL": server.url}
    with Popen([PROGRAM, "mcp"], env=environment, stdin=PIPE, stdout=PIPE, stderr=PIPE) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        process.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        process.stdin.flush()
        assert (process.wait(60), process.stderr.read()) == (0, b"")


def test_a_missing_key_and_a_wrong_proxy_are_named() -> None:
    told = Shop("http://127.0.0.1:9", "").fail("mcp", status=5)
    assert told.startswith("no key: put your API key into the environment")
    proxy = {"http_proxy": "ftp://proxy.example"}
    told = Shop("http://shop.example", "a-key").fail("mcp", status=1, **proxy)
    assert told.startswith("http_proxy: expected an HTTP proxy")


def test_without_its_extra_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(sys.modules):
        if name.startswith(("mcp", "petstore.agents.")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mcp", None)
    monkeypatch.delattr(agents, "server", raising=False)
    assert Shop("http://127.0.0.1:9", "a-key").fail("mcp", status=1) == (
        "petstore mcp needs a package that is not installed; in a checkout, run:"
        " pip install ./clients/python '.[mcp]'"
    )
