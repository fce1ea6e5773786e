"""A real Redis Cluster of three masters, and a server that a Sentinel watches over."""

import re
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from random import randrange
from typing import Any

from support.redis_server import RedisServer
from support.waiting import within

SLOTS = 16_384
_LOWEST = 12_000
_BUS = 10_000
"""A server of a cluster listens on the port so much higher too."""


class RedisCluster:
    """Three masters with a third of the slots each."""

    def __init__(self, stack: ExitStack) -> None:
        self.servers = [
            _started(
                stack,
                "cluster-enabled yes",
                "cluster-node-timeout 1000",
                "cluster-config-file nodes.conf",
                port=_port_with_bus(),
            )
            for _ in range(3)
        ]
        for number, server in enumerate(self.servers):
            slots = range(number * SLOTS // 3, (number + 1) * SLOTS // 3)
            server.call("CLUSTER", "ADDSLOTS", *slots)
        assert within(30, self._meet)

    @property
    def url(self) -> str:
        """The address of the cluster: of any server of it."""
        addresses = ",".join(f"127.0.0.1:{server.port}" for server in self.servers)
        return f"redis://{addresses}/?cluster=true"

    def _meet(self) -> bool:
        """Return whether all servers know of all others and of every slot; if not, they meet.

        A server gives up one that does not respond within a second, as on a busy machine.
        """
        said = [server.call("CLUSTER", "INFO") for server in self.servers]
        for server, text in zip(self.servers, said, strict=True):
            if re.search("known_nodes:[12]\\b", text):
                server.call("CLUSTER", "MEET", "127.0.0.1", self.servers[0].port)
        return all("cluster_state:ok" in text and "known_nodes:3" in text for text in said)

    def server_of(self, name: str) -> RedisServer:
        """Return the server that has a hash."""
        slot: int = self.servers[0].call("CLUSTER", "KEYSLOT", name)
        return self.servers[(slot * 3 + 2) // SLOTS]

    def move(self, name: str, to: RedisServer) -> None:
        """Give the slot of a hash that is not there to another server."""
        home = self.server_of(name)
        slot = to.call("CLUSTER", "KEYSLOT", name)
        its_id = to.call("CLUSTER", "MYID")
        # Only then does every node see it as the owner, whatever they gossiped meanwhile.
        to.call("CLUSTER", "SETSLOT", slot, "IMPORTING", home.call("CLUSTER", "MYID"))
        home.call("CLUSTER", "SETSLOT", slot, "MIGRATING", its_id)
        for server in (to, *self.servers):
            server.call("CLUSTER", "SETSLOT", slot, "NODE", its_id)


@contextmanager
def redis_cluster() -> Iterator[RedisCluster]:
    """Run a cluster until the block ends."""
    with ExitStack() as stack:
        yield RedisCluster(stack)


class Watched:
    """A master, its replica, and the Sentinel that makes that the master when the first is gone."""

    def __init__(self, stack: ExitStack) -> None:
        self.master = _started(stack)
        self.replica = _started(stack, f"replicaof 127.0.0.1 {self.master.port}")
        assert within(30, lambda: self.master.call("ROLE")[2])
        self.sentinel = _started(
            stack,
            f"sentinel monitor shop 127.0.0.1 {self.master.port} 1",
            "sentinel down-after-milliseconds shop 300",
            "sentinel failover-timeout shop 2000",
            sentinel=True,
        )
        assert within(30, self._sees_the_replica)

    @property
    def url(self) -> str:
        """The address of the Sentinel and the name of what it watches."""
        return f"redis+sentinel://127.0.0.1:{self.sentinel.port}/shop"

    def replicate(self) -> None:
        """Return once the replica has every change of the master."""
        assert self.master.call("WAIT", 1, 20_000) == 1

    def _sees_the_replica(self) -> bool:
        return len(self.sentinel.call("SENTINEL", "REPLICAS", "shop")) == 1


@contextmanager
def watched() -> Iterator[Watched]:
    """Run a master, a replica and a Sentinel until the block ends."""
    with ExitStack() as stack:
        yield Watched(stack)


def _started(stack: ExitStack, *lines: str, **options: Any) -> RedisServer:
    server = RedisServer(*lines, **options)
    stack.callback(server.remove)
    return server


def _port_with_bus() -> int:
    """Return a port that is free with its bus port, both below the ephemeral range."""
    while True:
        port = randrange(_LOWEST, _LOWEST + _BUS)  # noqa: S311 - a port, not a secret
        if _is_free(port) and _is_free(port + _BUS):
            return port


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0
