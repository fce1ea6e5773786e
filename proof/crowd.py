"""A good client beside a crowd: what it notices, and what the service spends."""

import asyncio
import math
import resource
from functools import partial
from typing import Any, NamedTuple

from proof.attackers import Kind, Target, attacking, costly
from proof.deployments import Deployment
from proof.experiment import Trial
from proof.good_client import Requests, request_steadily
from servers import Server

_MANY = 100_000
_OTHERS = 32
_OTHERS_SECONDS = 3
_TIMES_LONGER = 10
_SPARE_FILES = 500


class Beside(NamedTuple):
    """The good client's requests, the crowd's responses, and the growth of the service in MB."""

    good: Requests
    seen: dict[str, int]
    megabytes: float


def target_of(deployment: Deployment, limited: str = "") -> Target:
    """Return the service as the target of a crowd; ``limited`` is the token of a key with limits.

    Without it the crowd has only the key without limits.
    """
    server = deployment.server
    return Target(server.port, server.process.pid, deployment.token, limited or deployment.token)


def request_beside(
    target: Target,
    token: str,
    kind: Kind,
    callers: int,
    seconds: float,
    *,
    addresses: int = _MANY,
    keeps_alive: bool = True,
    niceness: int = 10,
) -> Beside:
    """Let a good client ask with ``token`` for some seconds beside so many callers of a kind."""
    server = Server(target.pid, target.port, 0)
    before = server.megabytes
    with attacking(kind, target, callers, addresses, seconds, niceness=niceness) as seen:
        asking = request_steadily(target.port, token, seconds, keeps_alive=keeps_alive)
        good = asyncio.run(asking)
        grown = server.megabytes - before
    return Beside(good, dict(seen), grown)


def judge_good_client(trial: Trial, name: str, good: Requests, longest: float) -> None:
    """Expect each request to have had its response, and nearly all within ``longest`` seconds."""
    p99 = good.percentile(0.99) / 1e3
    trial.count("requests of the good client", len(good.times))
    trial.note_max(f"p50 beside {name}, ms", good.percentile(0.5))
    trial.note_max(f"p99 beside {name}, ms", good.percentile(0.99))
    trial.expect(not good.failed, f"{name}: {good.failed} of {len(good.times)} requests failed")
    trial.expect(p99 < longest, f"{name}: p99 of the good client is {p99:.2f} s")


class GoodClient:
    """A client that asks with ``token``, and that no crowd may keep waiting.

    99 % of its requests have ``longest`` seconds, or ten times what they take in the same minute
    beside others who just list pets.
    """

    def __init__(
        self, trial: Trial, target: Target, token: str, longest: float, *, keeps_alive: bool = True
    ) -> None:
        self._trial = trial
        self._longest = longest
        self._ask_beside = partial(request_beside, target, token, keeps_alive=keeps_alive)
        self.limit = self._limit_now()

    def stand_beside(
        self, name: str, kind: Kind, callers: int, seconds: float, **how: Any
    ) -> Beside:
        """Ask beside a crowd; return what both saw, once that is judged.

        If it is late, the machine may have become busy meanwhile: both are tried twice more.
        """
        for tries_left in (2, 1, 0):
            beside = self._ask_beside(kind, callers, seconds, **how)
            is_late = beside.good.percentile(0.99) / 1e3 >= self.limit
            if beside.good.failed or not is_late or not tries_left:
                break
            self.limit = self._limit_now()
        judge_good_client(self._trial, name, beside.good, self.limit)
        return beside

    def _limit_now(self) -> float:
        kind = costly("GET", "/v1/pets?limit=1")
        good = self._ask_beside(kind, _OTHERS, _OTHERS_SECONDS, addresses=1).good
        judge_good_client(self._trial, "others who list pets", good, math.inf)
        return max(self._longest, _TIMES_LONGER * good.percentile(0.99) / 1e3)


def allowed_callers(wanted: int) -> int:
    """Return how many of the wanted connections a process may open."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return min(wanted, hard - _SPARE_FILES)
