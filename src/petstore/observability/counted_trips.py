"""Trips to Redis that count what becomes of the limiter."""

from petstore.observability.metrics import BANS, FALLBACK_WORKERS, FALLBACKS
from petstore.observability.registry import Registry
from petstore.rate_limits.contract import State
from petstore.rate_limits.trips import Check, Client, Heartbeat, OutOfReach, Reply, Trips


class CountedTrips(Trips):
    """Counts bans and failures. After a failure the limiter does without until a beat goes well.

    A ban is counted by the request that brought it on. Two processes may both count one, if they
    refuse the same key in the very millisecond in which it begins.
    """

    def __init__(self, client: Client, seconds: float, registry: Registry) -> None:
        super().__init__(client, seconds)
        self._is_apart = False
        self._fallbacks = 0
        self._bans = 0
        self._latest_bans: tuple[int, set[str]] = (0, set())
        registry.report(BANS, lambda: self._bans)
        registry.report(FALLBACKS, lambda: self._fallbacks)
        registry.report(FALLBACK_WORKERS, lambda: int(self._is_apart))

    async def run(self, check: Check) -> Reply:
        """Return what the script replies.

        Raises:
            OutOfReach: there is no reply, or it is an error.
        """
        try:
            reply = await super().run(check)
        except OutOfReach:
            self._fail()
            raise
        if reply[0] == b"banned":
            self._note_ban(check.name, reply)
        return reply

    async def count_processes(self) -> Heartbeat:
        """Say that this process is there, and return how many have said so of late.

        Raises:
            OutOfReach: Redis is out of reach or failing.
        """
        try:
            heartbeat = await super().count_processes()
        except OutOfReach:
            self._fail()
            raise
        self._is_apart = False
        return heartbeat

    def _fail(self) -> None:
        self._fallbacks += not self._is_apart
        self._is_apart = True

    def _note_ban(self, name: str, reply: Reply) -> None:
        now, *fields = map(int, reply[1:])
        if State(*fields).banned_at != now:
            return
        since, names = self._latest_bans
        if since != now:
            names = set()
            self._latest_bans = (now, names)
        self._bans += name not in names
        names.add(name)
