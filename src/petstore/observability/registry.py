"""The samples of this worker, and ``/metrics`` with the samples of all workers of the service.

Each worker writes its samples to a file named after its worker id, in a folder that all share. The
next worker with that id adds to the counts in that file, so counters never fall and there are never
more files than worker ids. A scrape adds up all files. Gauges count only while their worker lives.
"""

import asyncio
import logging
import socket
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, suppress
from itertools import accumulate
from operator import add
from pathlib import Path
from typing import NamedTuple

import msgspec

from petstore.http.messages import Receive, Request, Response
from petstore.http.server import ConnectionLimits, HttpServer
from petstore.observability import metrics
from petstore.observability.metrics import METRICS, Labels, Metric, Sample, Samples
from petstore.periodic_tasks import PeriodicTask, attempt, background

_MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_PUBLISH_SECONDS = 1
_GAUGES_LAST_SECONDS = 3
_LAST_SCRAPE_SECONDS = 1
_LIMITS = ConnectionLimits(connections=64, per_address=64, seconds=5)
_LOG = logging.getLogger(__name__)

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Samples).decode


class SharedMetrics(NamedTuple):
    """The socket of ``/metrics`` and the folder for samples, which all workers share."""

    listener: socket.socket
    folder: Path
    workers: int = 1
    worker_id: int = 0


@contextmanager
def share_metrics(listener: socket.socket, workers: int = 1) -> Iterator[SharedMetrics]:
    with tempfile.TemporaryDirectory(prefix="petstore-metrics-") as folder:
        yield SharedMetrics(listener, Path(folder), workers)


class Registry:
    """The samples of this worker. Instruments change them in place or register a function."""

    def __init__(self, shared: SharedMetrics, version: str, *, serves: bool = True) -> None:
        self._listener = shared.listener
        self._file = shared.folder / str(shared.worker_id)
        self._previous = _decode(self._file.read_bytes()) if self._file.exists() else {}
        # A clean stop removes the gauges.
        crashes = int(metrics.WORKERS.name in self._previous)
        _drop_gauges(self._previous)
        self._samples: Samples = {}
        self._has_gauges = True
        self._readers: dict[tuple[Metric, Labels], Callable[[], Sample]] = {}
        self._shared_readers: dict[tuple[Metric, Labels], Callable[[], float]] = {}
        # One thread, so samples are written in the order in which they were taken.
        self._disk = ThreadPoolExecutor(1, "metrics")
        self.periodic_tasks: list[PeriodicTask] = []
        self.report(metrics.CRASHES, lambda: crashes)
        self.report(metrics.WORKERS, lambda: int(serves))
        self.report_shared(metrics.WORKERS_CONFIGURED, lambda: shared.workers)
        self.report_shared(metrics.BUILD, lambda: 1, version)

    def samples(self, metric: Metric) -> dict[Labels, Sample]:
        return self._samples.setdefault(metric.name, defaultdict(metric.zero))

    def report(self, metric: Metric, read: Callable[[], float], *labels: str) -> None:
        """Report what ``read`` returns: for a counter, the count since the start of this worker."""
        self._readers[metric, labels] = lambda: [read()]

    def report_shared(self, metric: Metric, read: Callable[[], float], *labels: str) -> None:
        """Report a gauge of all workers; it is read in a thread, and ``OSError`` leaves it out."""
        self._shared_readers[metric, labels] = read

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        publish = PeriodicTask(self._publish, _PUBLISH_SECONDS, "metrics not published")
        await attempt(publish)  # so that a crash in the first second is noticed
        server = HttpServer(self._respond, self._listener, _LIMITS)
        serving = asyncio.create_task(server.serve())
        try:
            async with background(publish, *self.periodic_tasks):
                yield
        finally:
            server.stop()
            await asyncio.wait([serving], timeout=_LAST_SCRAPE_SECONDS)
            self._has_gauges = False
            await attempt(publish)
            self._disk.shutdown()

    async def exposition(self) -> tuple[str, bytes]:
        await self._publish()
        return await asyncio.get_running_loop().run_in_executor(self._disk, self._exposition)

    async def _respond(self, request: Request, _: Receive) -> Response:
        if request.refusal is not None:
            return _response(request.refusal.status, "text/plain", b"expected HTTP/1.1\n")
        if (request.method, request.path) != ("GET", "/metrics"):
            return _response(404, "text/plain", b"expected GET /metrics\n")
        try:
            return _response(200, *await self.exposition())
        except Exception:  # noqa: BLE001 - whatever it is, the service itself continues
            _LOG.exception("cannot report the metrics")
            return _response(500, "text/plain", b"the log has the reason\n")

    async def _publish(self) -> None:
        for (metric, labels), read in self._readers.items():
            self.samples(metric)[labels] = read()
        # Encoded here, in the thread that changes the samples; writing may wait for the disk.
        total = _total([self._previous, self._samples])
        if not self._has_gauges:
            _drop_gauges(total)
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._disk, _write, self._file, _encode(total))

    def _exposition(self) -> tuple[str, bytes]:
        total = _total(map(_read_live, self._file.parent.glob("[0-9]*")))
        for (metric, labels), read in self._shared_readers.items():
            with suppress(OSError):
                total[metric.name] = {labels: [read()]}
        return _MEDIA_TYPE, "\n".join([*_lines(total), ""]).encode()


def _response(status: int, content_type: str, body: bytes) -> Response:
    lines = f"content-type: {content_type}\r\ncontent-length: {len(body)}"
    return Response(status, body, [lines.encode("ascii")], is_last=True)


def _lines(samples: Samples) -> Iterator[str]:
    """Yield the text format of Prometheus. No label holds data of a client, so none is escaped."""
    for name, kind, text, labels, bounds in METRICS:
        family = f"{name}_total" if kind == "counter" else name
        yield f"# HELP {family} {text}"
        yield f"# TYPE {family} {kind}"
        for values, (*counts, value) in samples.get(name, {}).items():
            named = [f'{label}="{of}"' for label, of in zip(labels, values, strict=True)]
            where = "{" + ",".join(named) + "}" if named else ""
            if not counts:
                yield f"{family}{where} {float(value)}"
                continue
            ends = [*map(float, bounds), "+Inf"]
            for end, count in zip(ends, accumulate(counts), strict=True):
                bucket = ",".join([*named, f'le="{end}"'])
                yield f"{name}_bucket{{{bucket}}} {float(count)}"
            yield f"{name}_count{where} {float(sum(counts))}"
            yield f"{name}_sum{where} {float(value)}"


def _write(file: Path, encoded: bytes) -> None:
    unfinished = file.with_name(f"~{file.name}")
    unfinished.write_bytes(encoded)
    unfinished.replace(file)


def _read_live(file: Path) -> Samples:
    samples = _decode(file.read_bytes())
    if time.time() - file.stat().st_mtime > _GAUGES_LAST_SECONDS:
        _drop_gauges(samples)
    return samples


def _drop_gauges(samples: Samples) -> None:
    for metric in METRICS:
        if metric.kind == "gauge":
            samples.pop(metric.name, None)


def _total(parts: Iterable[Samples]) -> Samples:
    total: Samples = {}
    for part in parts:
        for name, samples in part.items():
            sums = total.setdefault(name, {})
            for labels, sample in samples.items():
                before = sums.get(labels)
                sums[labels] = sample if before is None else [*map(add, before, sample)]
    return total
