"""The figures of this process: counted where things happen, from outside, and told on demand.

Without metrics none of this is there, and nothing is spent on it.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    asynccontextmanager,
    nullcontext,
    suppress,
)
from typing import TypeVar, get_args

from petstore.api.application import RequestRecord
from petstore.chores import Chore, attempt, background
from petstore.databases.contract import Store
from petstore.domain.api_keys import ApiKey
from petstore.logs import RequestLine
from petstore.observability.board import Board
from petstore.observability.endpoint import endpoint
from petstore.observability.event_loop import SAMPLE_SECONDS, LoopLag
from petstore.observability.figures import (
    CRASHES,
    DATABASE_ERRORS,
    DECISIONS,
    LAG,
    METHODS,
    QUERIES,
    REQUESTS,
    SECONDS,
    TRANSACTIONS,
    WORKERS,
    WORKERS_CONFIGURED,
    Figures,
    Histogram,
    Labels,
    Metric,
    Spread,
    empty_spread,
    observe,
    spread_of,
)
from petstore.observability.place import Place
from petstore.observability.timed_store import TimedStore
from petstore.rate_limits.contract import Decision, RateLimiter, Verdict

T = TypeVar("T")

_PUBLISH_SECONDS = 1
_OTHER = "other"
_NONE = "none"


class NoMetrics:
    """Measures nothing, and costs nothing."""

    def of_requests(self, record: RequestRecord) -> RequestRecord:
        """Return ``record`` so that requests are counted too."""
        return record

    def of_limiter(self, limiter: RateLimiter) -> RateLimiter:
        """Return ``limiter`` so that its decisions are counted too."""
        return limiter

    def of_store(self, store: Store, name: str) -> Store:  # noqa: ARG002 - told in metrics alone
        """Return ``store``, the database of this ``name``, so that it is timed too."""
        return store

    def counter(self, metric: Metric, read: Callable[[], float], *labels: str) -> None:
        """Tell what ``read`` returns: a count since the start of this process."""

    def gauge(self, metric: Metric, read: Callable[[], float], *labels: str) -> None:
        """Tell what ``read`` returns: how many there are now."""

    def shared_gauge(self, metric: Metric, read: Callable[[], float]) -> None:
        """Tell what ``read`` returns, which is the same in every process of the service.

        It is called at a scrape, in a thread. It raises ``OSError`` for what cannot be told.
        """

    def histogram(self, histogram: Histogram, observed: Mapping[int, int]) -> None:
        """Tell how often each value was ``observed`` since the start of this process."""

    def running(self) -> AbstractAsyncContextManager[None]:
        """Tell the figures until the block ends."""
        return nullcontext()


NO_METRICS = NoMetrics()


class Metrics(NoMetrics):
    """What this process counted, and ``/metrics`` for it and the others of this ``version``."""

    def __init__(self, place: Place, version: str) -> None:
        self._version = version
        self._listener = place.listener
        self._board = Board(place.folder, place.seat)
        self._publishing = asyncio.Lock()
        self._figures = Figures(
            counters={CRASHES.name: {(): int(self._board.is_after_crash)}},
            gauges={WORKERS.name: {(): 1}},
        )
        self._refreshers: list[Callable[[], None]] = []
        self._shared: dict[Metric, Callable[[], float]] = {}
        self._lag = LoopLag(self._spreads(LAG)[()])
        self.shared_gauge(WORKERS_CONFIGURED, lambda: place.workers)

    def of_requests(self, record: RequestRecord) -> RequestRecord:
        """Return ``record`` so that requests are counted too."""
        return _CountedRequests(record, self._figures, self._spreads(SECONDS))

    def of_limiter(self, limiter: RateLimiter) -> RateLimiter:
        """Return ``limiter`` so that its decisions are counted too."""
        return _CountedLimiter(limiter, self._figures)

    def of_store(self, store: Store, name: str) -> Store:
        """Return ``store``, the database of this ``name``, so that it is timed too."""
        errors = self._figures.counters.setdefault(DATABASE_ERRORS.name, {})
        return TimedStore(store, name, self._spreads(QUERIES), self._spreads(TRANSACTIONS), errors)

    def counter(self, metric: Metric, read: Callable[[], float], *labels: str) -> None:
        """Tell what ``read`` returns: a count since the start of this process."""
        self._keep_reading(self._figures.counters.setdefault(metric.name, {}), labels, read)

    def gauge(self, metric: Metric, read: Callable[[], float], *labels: str) -> None:
        """Tell what ``read`` returns: how many there are now."""
        self._keep_reading(self._figures.gauges.setdefault(metric.name, {}), labels, read)

    def shared_gauge(self, metric: Metric, read: Callable[[], float]) -> None:
        """Tell what ``read`` returns, which is the same in every process of the service.

        It is called at a scrape, in a thread. It raises ``OSError`` for what cannot be told.
        """
        self._shared[metric] = read

    def histogram(self, histogram: Histogram, observed: Mapping[int, int]) -> None:
        """Tell how often each value was ``observed`` since the start of this process."""
        spreads = self._figures.histograms.setdefault(histogram.metric.name, {})
        self._keep_reading(spreads, (), lambda: spread_of(histogram, observed))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Tell the figures until the block ends."""
        publish = Chore(self._publish, _PUBLISH_SECONDS, "metrics not published")
        sample = Chore(self._lag.sample, SAMPLE_SECONDS, "lag of the event loop not measured")
        await attempt(publish)  # if it is killed before the first time, that is known
        try:
            async with (
                endpoint(self._listener, self._tell_all),
                background(publish, sample),
            ):
                yield
        finally:
            self._figures.gauges.clear()
            await attempt(publish)

    def _spreads(self, histogram: Histogram) -> dict[Labels, Spread]:
        spreads = self._figures.histograms
        return spreads.setdefault(
            histogram.metric.name, defaultdict(lambda: empty_spread(histogram))
        )

    def _keep_reading(self, values: dict[Labels, T], labels: Labels, read: Callable[[], T]) -> None:
        def refresh() -> None:
            values[labels] = read()

        self._refreshers.append(refresh)

    async def _publish(self) -> None:
        async with self._publishing:
            for refresh in self._refreshers:
                refresh()
            # Encoded here, where nobody changes them meanwhile; a thread waits for the disk.
            encoded = self._board.encoded(self._figures)
            putting = asyncio.create_task(asyncio.to_thread(self._board.put, encoded))
            try:
                await asyncio.shield(putting)
            finally:  # a thread goes on when its caller is cancelled, and must not be the last
                await asyncio.wait([putting])

    async def _tell_all(self) -> tuple[str, bytes]:
        await self._publish()
        return await asyncio.to_thread(self._exposed)

    def _exposed(self) -> tuple[str, bytes]:
        # Imported where it is used, in a thread: it takes its time.
        from petstore.observability.exposition import exposition

        total = self._board.total()
        for metric, read in self._shared.items():
            with suppress(OSError):
                total.gauges[metric.name] = {(): read()}
        return exposition(total, self._version)


class _CountedRequests:
    def __init__(
        self, record: RequestRecord, figures: Figures, seconds: dict[Labels, Spread]
    ) -> None:
        self._record = record
        self._requests: dict[Labels, float] = defaultdict(int)
        self._seconds = seconds
        figures.counters[REQUESTS.name] = self._requests

    def add(self, line: RequestLine) -> None:
        self._record.add(line)
        name = line.operation or _NONE
        method = line.method if line.method in METHODS else _OTHER
        self._requests[name, method, line.status] += 1
        observe(self._seconds[(name,)], SECONDS, line.milliseconds / 1000)


class _CountedLimiter:
    def __init__(self, limiter: RateLimiter, figures: Figures) -> None:
        self._limiter = limiter
        self._verdicts: dict[Labels, float] = {(verdict,): 0 for verdict in get_args(Verdict)}
        figures.counters[DECISIONS.name] = self._verdicts
        self.look, self.look_address = limiter.look, limiter.look_address
        self.heartbeat, self.save, self.close = limiter.heartbeat, limiter.save, limiter.close

    async def take(self, key: ApiKey) -> Decision:
        decision = await self._limiter.take(key)
        self._verdicts[(decision.verdict,)] += 1
        return decision

    async def take_address(self, address: str) -> Decision:
        decision = await self._limiter.take_address(address)
        self._verdicts[(decision.verdict,)] += 1
        return decision
