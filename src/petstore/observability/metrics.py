"""Every metric of the service. Adding one takes a line here; /docs/metrics lists them."""

from bisect import bisect_left
from typing import Literal, NamedTuple, TypeAlias

METHODS = frozenset(("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"))
"""Methods that metrics and spans name. A client can send any, and the series must stay few."""

Labels: TypeAlias = tuple[str | int, ...]

Sample: TypeAlias = list[float]
"""The value of a counter or a gauge; the count of each bucket of a histogram, then the sum."""

Samples: TypeAlias = dict[str, dict[Labels, Sample]]  # samples by metric and labels


class Metric(NamedTuple):
    """A metric. ``bounds`` are the upper ends of a histogram's buckets; the last has no end."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()

    def zero(self) -> Sample:
        return [0] * (len(self.bounds) + 2 if self.bounds else 1)


def _counter(name: str, text: str, *labels: str) -> Metric:
    return Metric(name, "counter", text, labels)


def _gauge(name: str, text: str, *labels: str) -> Metric:
    return Metric(name, "gauge", text, labels)


def _histogram(name: str, text: str, bounds: tuple[float, ...], *labels: str) -> Metric:
    return Metric(name, "histogram", text, labels, bounds)


REQUESTS = _counter("petstore_requests", "HTTP requests.", "operation", "method", "status")
FALLBACKS = _counter(
    "petstore_limiter_fallbacks",
    "Times a worker switched to its share of the limits without Redis.",
)
BANS = _counter("petstore_bans", "Bans of keys that began.")
DELIVERIES = _counter(
    "petstore_deliveries",
    "Attempts to deliver an event: succeeded, failed (another follows), or abandoned.",
    "outcome",
)
DATABASE_ERRORS = _counter("petstore_database_errors", "Reads and transactions that failed.")
CRASHES = _counter("petstore_worker_crashes", "Workers that ended without a clean stop.")
CPU_SECONDS = _counter("process_cpu_seconds", "User and system CPU time, in seconds.", "worker")

BUILD = _gauge("petstore_build_info", "The running version; always 1.", "version")
WORKERS = _gauge("petstore_workers", "Workers that are running.")
WORKERS_CONFIGURED = _gauge("petstore_workers_configured", "Number of workers that is configured.")
CONNECTIONS = _gauge("petstore_connections", "Open client connections.")
CONNECTIONS_MAX = _gauge("petstore_connections_max", "Maximum number of client connections.")
FALLBACK_WORKERS = _gauge(
    "petstore_limiter_fallback_workers",
    "Workers that enforce their share of the limits without Redis.",
)
FEED_LAG = _gauge(
    "petstore_feed_lag_seconds", "How long the oldest event without a place in the feed has waited."
)
LONG_POLLS = _gauge("petstore_long_polls", "Requests that are waiting for an event.")
POOL_IN_USE = _gauge("petstore_pool_connections_in_use", "Connections to PostgreSQL in use.")
POOL_SIZE = _gauge("petstore_pool_connections_max", "Maximum number of connections to PostgreSQL.")
DATABASE_BYTES = _gauge("petstore_database_bytes", "Size of the SQLite file and its log.")
DISK_FREE = _gauge("petstore_disk_free_bytes", "Free space on the disk of the SQLite file.")
DISK_SIZE = _gauge("petstore_disk_size_bytes", "Size of the disk of the SQLite file.")
LAST_BACKUP = _gauge(
    "petstore_last_backup_timestamp_seconds",
    "When the last successful backup of the SQLite file began; 0 if none is known.",
)
OLDEST_DELIVERY = _gauge(
    "petstore_oldest_delivery_seconds",
    "Age of the oldest event that waits to be delivered; 0 if there is none.",
)
WEBHOOKS_DISABLED = _gauge(
    "petstore_webhooks_disabled", "Webhooks that were disabled because deliveries failed."
)
START_TIME = _gauge(
    "process_start_time_seconds", "When the process started, in seconds since 1970.", "worker"
)
MEMORY = _gauge("process_resident_memory_bytes", "Resident memory size.", "worker")
OPEN_FILES = _gauge("process_open_fds", "Open file descriptors.", "worker")
MAX_FILES = _gauge("process_max_fds", "Maximum number of open file descriptors.", "worker")

SECONDS = _histogram(
    "petstore_request_duration_seconds",
    "From the end of the request's header to the response.",
    (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
    "operation",
)
QUERIES = _histogram(
    "petstore_query_duration_seconds",
    "From the statement to its rows; a read includes the wait for a connection.",
    (0.00001, 0.00005, 0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5),
    "query",
)
TRANSACTIONS = _histogram(
    "petstore_transaction_duration_seconds",
    "From the change to its commit on disk, including the wait for other changes.",
    (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5),
)
DELIVERY_SECONDS = _histogram(
    "petstore_delivery_duration_seconds",
    "From the start of an attempt to deliver an event to its end.",
    (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15),
)
LAG = _histogram(
    "petstore_event_loop_lag_seconds",
    "How late the event loop ran a timer.",
    (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5),
)

METRICS = [metric for metric in list(globals().values()) if isinstance(metric, Metric)]


def observe(sample: Sample, metric: Metric, value: float) -> None:
    sample[bisect_left(metric.bounds, value)] += 1
    sample[-1] += value
