"""Crowds: thousands of idle, dripping and pipelining callers, overload, and a noisy neighbour."""

import asyncio
import re
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple, cast

import httpx

from proof import attackers
from proof.attackers import Caller, Kind, costly
from proof.crowd import GoodClient, allowed_callers, judge_good_client, request_beside, target_of
from proof.deployments import Deployment, deployed
from proof.experiment import Experiment, Trial
from proof.good_client import Requests, request_steadily
from works import request

_LONGEST = 2.0  # s, of 99 % of the good client's requests on a quiet machine
_MORE_MEGABYTES = 160
_OVERLOAD = 5
_CALLERS = 64
_TICK = 0.01  # s
_MAX_WAITING = 64
_STATUS = re.compile(rb"HTTP/1\.1 ([0-9]{3})")
_STATUS_BYTES = 12
_SHARE = 1 / 2  # of its capacity that the service must still serve under overload


class _Crowd(NamedTuple):
    """Callers of one kind, and for how long at least they stay."""

    name: str
    kind: Kind
    callers: int
    seconds: float
    keeps_alive: bool = True


_CROWDS = (
    _Crowd("10,000 idle", attackers.idle, 10_000, 13, keeps_alive=False),
    _Crowd("1,000 dripping heads", attackers.drip_head, 1_000, 12),
    _Crowd("1,000 dripping bodies", attackers.drip_body, 1_000, 12),
    _Crowd("1,000 pipelining", attackers.pipeline, 1_000, 8),
    _Crowd("64 with tiny chunks", attackers.chunks, 64, 5),
    _Crowd("64 with made-up tokens", attackers.make_up_tokens, 64, 5),
)


def _run_crowds(trial: Trial) -> None:
    for number in trial.rounds():
        with deployed(trial.folder / str(number)) as deployment:
            for crowd in _CROWDS:
                _stand_beside(trial, deployment, crowd)


def _stand_beside(trial: Trial, deployment: Deployment, crowd: _Crowd) -> None:
    callers = allowed_callers(crowd.callers)
    if callers < crowd.callers:
        trial.skipped.append(f"{crowd.name}: {callers:,}, as many files as may be open")
    target, token = target_of(deployment), _with_a_pet(deployment)
    good = GoodClient(trial, target, token, _LONGEST, keeps_alive=crowd.keeps_alive)
    beside = good.stand_beside(crowd.name, crowd.kind, callers, crowd.seconds)
    connected = beside.seen.get("connections", 0)
    trial.count("connections of crowds", connected)
    trial.expect(connected >= callers, f"{crowd.name}: only {connected} connected")
    trial.note_max(f"more memory for {crowd.name}, MB", beside.megabytes)
    grown = f"{crowd.name}: the service grew by {beside.megabytes:.0f} MB"
    trial.expect(beside.megabytes < _MORE_MEGABYTES, grown)


def _with_a_pet(deployment: Deployment) -> str:
    """Return the token of the key without limits, once there are the pets that are asked for."""
    headers = {"Authorization": f"Bearer {deployment.token}"}
    with httpx.Client(base_url=f"{deployment.server.url}/v1", headers=headers, timeout=20) as http:
        while len(http.get("/pets?id=7").raise_for_status().json()) == 0:
            new = {"name": "Rex", "categoryId": 1, "status": "available"}
            http.post("/pets", json=new).raise_for_status()
    return deployment.token


# Overload


def _open_loop(one: bytes, rate: float) -> Kind:
    """Return clients that each send ``rate`` requests a second, whatever the responses."""

    async def calling(caller: Caller) -> None:
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(
            lambda: _Counting(caller.seen), "127.0.0.1", caller.target.port
        )
        started, sent = loop.time(), 0
        try:
            while True:
                due = int((loop.time() - started) * rate)
                connection.send(one, due - sent)
                sent = due
                await asyncio.sleep(_TICK)
        finally:
            connection.end()

    return calling


class _Counting(asyncio.Protocol):
    """A connection that sends what is due, and counts the responses.

    Beyond some that wait for a response it is given up: more would wait in the kernel, whose window
    on the loopback network opens in steps of 64 KiB.
    """

    def __init__(self, seen: Counter[str]) -> None:
        self._seen = seen
        self._tail = b""
        self._waiting = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Note the connection."""
        self._transport = cast("asyncio.Transport", transport)
        self._seen["connections"] += 1

    def send(self, one: bytes, times: int) -> None:
        """Send a request so many times, as far as there is room."""
        self._seen["due"] += times
        sent = min(times, _MAX_WAITING - self._waiting)
        self._waiting += sent
        self._seen["sent"] += sent
        self._transport.write(one * sent)

    def end(self) -> None:
        """Close the connection."""
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        """Count the responses that begin."""
        data = self._tail + data
        statuses = _STATUS.findall(data)
        self._waiting -= len(statuses)
        for status in statuses:
            self._seen[status.decode()] += 1
        self._tail = data[1 - _STATUS_BYTES :]


def _run_overload(trial: Trial) -> None:
    body = '{"name":"Rex","categoryId":1,"status":"available"}'
    works: dict[str, Callable[[str], bytes]] = {
        "reading": lambda token: request("GET", "/v1/pets/7", token),
        "adding": lambda token: request("POST", "/v1/pets", token, body),
    }
    for number in trial.rounds():
        for name, work in works.items():
            with deployed(trial.folder / f"{number}-{name}") as deployment:
                _overload(trial, deployment, name, work(_with_a_pet(deployment)))


def _overload(trial: Trial, deployment: Deployment, name: str, one: bytes) -> None:
    seconds = max(4.0, min(10.0, trial.seconds / 4))
    target, token = target_of(deployment), deployment.token
    good = GoodClient(trial, target, token, _LONGEST)
    method, body = ("POST", one.partition(b"\r\n\r\n")[2]) if b"POST" in one else ("GET", b"")
    path = one.split(b" ")[1].decode()
    asking = costly(method, path, body.decode())
    alone = request_beside(target, token, asking, 32, seconds / 2, niceness=0)
    capacity = _successes(alone.seen) / (seconds / 2)
    rate = _OVERLOAD * capacity / _CALLERS
    calling = _open_loop(one, rate)
    beside = good.stand_beside(f"overload, {name}", calling, _CALLERS, seconds, niceness=0)
    served = _successes(beside.seen) / seconds
    trial.note_max(f"capacity, {name}, requests/s", round(capacity))
    trial.note_max(f"due under overload, {name}, requests/s", round(_OVERLOAD * capacity))
    trial.note_max(f"served under overload, {name}, requests/s", round(served))
    trial.note_max(f"more memory, {name}, MB", beside.megabytes)
    trial.count("requests sent", beside.seen.get("sent", 0))
    trial.count("acknowledged changes", _successes({"201": beside.seen.get("201", 0)}))
    trial.expect(served > capacity * _SHARE, f"{name}: {served:.0f}/s served of {capacity:.0f}/s")
    failed = {status: n for status, n in beside.seen.items() if status.startswith("5")}
    trial.expect(not failed, f"{name}: {failed}")
    grown = f"{name}: the service grew by {beside.megabytes:.0f} MB"
    trial.expect(beside.megabytes < _MORE_MEGABYTES, grown)
    after: Requests = asyncio.run(request_steadily(deployment.port(), token, 2))
    judge_good_client(trial, f"nobody after overload, {name}", after, good.limit / 2)


def _successes(seen: dict[str, int]) -> int:
    return sum(number for status, number in seen.items() if status in ("200", "201"))


# A noisy neighbour


def _run_neighbour(trial: Trial) -> None:
    for number in trial.rounds():
        with deployed(trial.folder / str(number)) as deployment:
            limited = deployment.server.issue("free")
            _with_a_pet(deployment)
            token = deployment.server.issue()
            good = GoodClient(trial, target_of(deployment, limited), token, _LONGEST)
            floods = {
                "a key without limits": costly("GET", "/v1/pets/7"),
                "a key at its limit": attackers.limited,
                "a pipeline of a key at its limit": attackers.limited_pipeline,
            }
            for name, kind in floods.items():
                beside = good.stand_beside(name, kind, 64, 5, addresses=1)
                trial.count("requests of the neighbour", sum(_statuses(beside.seen)))
                _judge_admission(trial, deployment, name)


def _statuses(seen: dict[str, int]) -> list[int]:
    return [number for status, number in seen.items() if status.isdigit()]


def _judge_admission(trial: Trial, deployment: Deployment, name: str) -> None:
    """Expect a key to be admitted exactly as often as it may, whatever its neighbour did."""
    headers = {"Authorization": f"Bearer {deployment.server.issue('free')}"}
    with httpx.Client(base_url=f"{deployment.server.url}/v1", headers=headers, timeout=20) as http:
        statuses = [http.get("/pets/7").status_code for _ in range(61)]
    trial.expect(statuses == [200] * 60 + [429], f"beside {name}: {statuses.count(200)} of 60")
    trial.count("keys admitted exactly as often as they may")


EXPERIMENTS = [
    Experiment(
        "crowds",
        "10,000 idle, 1,000 dripping and 1,000 pipelining clients do not disturb a good client:"
        " each of its requests gets its response, and memory stays bounded.",
        "A good client sends 100 requests a second, alternately a list and a get, beside each"
        " crowd; beside idle clients it opens a connection for each. Its p99 must be under two"
        " seconds, or under ten times what it is in the same minute beside 32 clients that list"
        " pets.",
        _run_crowds,
        1,
        min_seconds=58,
    ),
    Experiment(
        "overload",
        "At five times its capacity the service still handles at least half of its capacity. A"
        " good client gets its responses in time, memory stays bounded, and afterwards everything"
        " is as before.",
        "64 clients send requests at a fixed rate, whether they get responses or not, at five"
        " times the capacity that was just measured; once reads, once durable creates. They use"
        " pipelines, which cost the service more. A good client as above.",
        _run_overload,
        0.7,
        min_seconds=24,
    ),
    Experiment(
        "a noisy neighbour",
        "A key that floods the service does not affect other keys: they are admitted exactly up"
        " to their limits, and get their responses in time.",
        "64 clients flood the service with one key: without limits, at its limit, and at its"
        " limit in pipelines. A good client uses another key. Then a fresh key sends requests"
        " until it is refused.",
        _run_neighbour,
        0.7,
        min_seconds=19,
    ),
]
