"""The clients of many callers: one for each key, and not too many."""

import pytest

from petstore.agents.clients import Clients
from petstore_client.errors import ClientClosed, NoResponse
from support.process import free_port

pytestmark = pytest.mark.anyio


@pytest.fixture
def clients() -> Clients:
    """Room for two clients of a store that does not respond."""
    return Clients(f"http://127.0.0.1:{free_port()}/v1", most=2)


async def test_a_key_keeps_its_client_and_shares_it_with_no_other(clients: Clients) -> None:
    async with clients.use("a") as first, clients.use("a") as again, clients.use("b") as other:
        assert first is again
        assert first is not other
    async with clients.use("a") as later:
        assert later is first


async def test_the_client_that_was_used_longest_ago_is_closed(clients: Clients) -> None:
    async with clients.use("a") as oldest:
        pass
    for key in "bc":
        async with clients.use(key) as kept:
            pass
    assert len(clients) == 2
    with pytest.raises(ClientClosed):
        await oldest.usage.get()
    with pytest.raises(NoResponse):
        await kept.with_options(max_retries=0).usage.get()


async def test_a_client_in_use_stays_open(clients: Clients) -> None:
    async with clients.use("a") as first:
        for key in "bcd":
            async with clients.use(key):
                assert len(clients) <= 3
        with pytest.raises(NoResponse):
            await first.with_options(max_retries=0).usage.get()
    assert len(clients) == 2


def test_a_proxy_that_cannot_be_used_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "ftp://proxy.example")
    with pytest.raises(ValueError, match="http_proxy: expected an HTTP proxy"):
        Clients("http://shop.example/v1")
