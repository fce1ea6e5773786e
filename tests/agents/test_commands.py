"""``petstore mcp``, with the client of the official SDK."""

import os
import signal
import sys
from pathlib import Path
from subprocess import PIPE, Popen

import pytest
from click.testing import CliRunner
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from petstore import agents
from petstore.agents.serving import is_host, is_loopback
from petstore.cli.main import main
from petstore.settings import Settings
from support.agents import Agent
from support.process import ServerProcess, free_port
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


@pytest.mark.usefixtures("root")
def test_over_http_it_serves_until_a_stop_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    from petstore.agents import serving

    run_http = serving.run_http
    stopped = []

    def run_until_ready(*arguments: object, settings: Settings, writes: bool) -> None:
        listener, clients, hosts, report_ready = arguments

        def report() -> None:
            report_ready()  # type: ignore[operator]
            os.kill(os.getpid(), signal.SIGTERM)

        run_http(listener, clients, hosts, report, settings=settings, writes=writes)  # type: ignore[arg-type]
        stopped.append((hosts, settings))

    monkeypatch.setattr(serving, "run_http", run_until_ready)
    port = free_port()
    options = ["--http", "--host", "0.0.0.0", "--allowed-host", "mcp.shop.example"]  # noqa: S104
    options += ["--trusted-proxy", "127.0.0.1", "--log-format", "json"]
    result = CliRunner().invoke(main, ["mcp", *options, "--port", str(port)])
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == f"MCP for http://127.0.0.1:8000/v1 at http://0.0.0.0:{port}/mcp\n"
    hosts = ("127.0.0.1", "localhost", "[::1]", "mcp.shop.example")
    assert stopped == [(hosts, Settings(trusted_proxy=("127.0.0.1",), log_format="json"))]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--host", "0.0.0.0"), "--host 0.0.0.0: name the hosts by which clients reach it"),  # noqa: S104
        (("--allowed-host", "http://x"), "--allowed-host: 'http://x': expected a host without a"),
        (("--trusted-proxy", "x"), "trusted-proxy: expected a network"),
        (("--allowed-host", "x:80"), "--allowed-host: 'x:80': expected a host without a port"),
    ],
)
def test_an_address_that_others_reach_needs_its_names(options: tuple[str, ...], told: str) -> None:
    result = CliRunner().invoke(main, ["mcp", "--http", *options])
    assert result.exit_code == 2
    assert told in result.stderr


@pytest.mark.parametrize(
    "option",
    [
        *("--port=9", "--host=::1", "--allowed-host=shop.example", "--trusted-proxy=127.0.0.1"),
        "--log-format=text",
    ],
)
def test_options_of_http_need_it(option: str) -> None:
    told = Shop("http://127.0.0.1:9", "a-key").fail("mcp", option, status=2)
    assert told == f"{option.partition('=')[0]} is for --http"


def test_without_a_key_it_does_not_start() -> None:
    shop = Shop("http://127.0.0.1:9", "")
    assert shop.fail("mcp", status=5).startswith("no key: put your API key into the environment")


def test_a_proxy_that_cannot_be_used_is_named() -> None:
    shop = Shop("http://shop.example", "a-key")
    told = shop.fail("mcp", status=1, http_proxy="ftp://proxy.example")
    assert told.startswith("http_proxy: expected an HTTP proxy")


def test_without_its_extra_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(sys.modules):
        if name.startswith(("mcp", "petstore.agents.")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mcp", None)
    monkeypatch.delattr(agents, "serving")
    told = Shop("http://127.0.0.1:9", "a-key").fail("mcp", status=1)
    assert told == (
        "petstore mcp needs a package that is not installed; in a checkout, run:"
        " pip install ./clients/python '.[mcp]'"
    )


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.8.8.8"])
def test_loopback_addresses_are_those_of_this_machine(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "mcp.shop.example", "10.0.0.1", ""])  # noqa: S104
def test_other_addresses_are_not(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize("text", ["shop.example", "10.0.0.1", "[2001:db8::1]"])
def test_a_host_is_a_name_or_an_address(text: str) -> None:
    assert is_host(text)


@pytest.mark.parametrize("text", ["", "*", "a b", "shop.example:80", "a@b", "a/b", "[::", "x:y"])
def test_other_texts_are_no_host(text: str) -> None:
    assert not is_host(text)
