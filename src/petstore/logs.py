"""The log: text on a terminal, else one JSON object a line. It never holds a token or a body."""

import logging
import signal
import sys
import threading
from collections import deque
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import BinaryIO, Literal, TypeAlias

import msgspec

from petstore.clock import SECOND, Clock, rfc3339

_MAX_BACKLOG = 100_000
_FLUSH_SECONDS = 0.1
_STANDARD_ERROR = 2
_HEALTH_CHECKS = frozenset({"/healthz", "/readyz"})
_OK = 200

_encoder = msgspec.json.Encoder()


EventName: TypeAlias = Literal[
    "started",
    "worker_ended",
    "stop_started",
    "stopped",
    "deliveries_started",
    "webhook_failing",
    "webhook_disabled",
]
"""Events of the service as a whole. Programs wait for these names, so they are stable."""


class LogEvent:
    """A message with an event name and members for programs, beside the text for people."""

    def __init__(self, name: EventName, message: str, **members: int | str) -> None:
        self.name = name
        self.members = members
        self._message = message

    def __str__(self) -> str:
        return self._message


class RequestLine(msgspec.Struct, kw_only=True, gc=False):
    """What is known of a request at its end: to log it, to count it and to trace it.

    docs/logs.md describes each member. ``key`` is the id of the API key, never the token;
    ``person`` is a person's in the console. ``login`` is the digest of a login that did not sign
    in. ``route`` is a template, never the path. The log sets ``time``.
    """

    time: str = ""
    request: str
    trace: str | msgspec.UnsetType = msgspec.UNSET
    client: str | None
    key: int | None
    person: int | None = None
    login: str | msgspec.UnsetType = msgspec.UNSET
    method: str
    route: str | None
    operation: str | None
    status: int
    code: str | None
    limit: str | None
    bytes: int
    milliseconds: float
    level: str = "info"
    event: str = "request"


Line: TypeAlias = RequestLine | msgspec.Raw
"""A line to write: of a request, or of a record that is formatted already."""


class RequestLog(logging.Handler):
    """Writes request lines, and as a handler the records of ``logging``, to ``stream``.

    A thread does, so that a stalled reader stalls nothing. While the stream stalls or fails, lines
    beyond ``max_backlog`` are dropped and counted. Lines below ``level`` and, unless it
    ``has_addresses``, the addresses of clients are left out.
    """

    def __init__(
        self,
        stream: BinaryIO,
        clock: Clock,
        *,
        for_person: bool,
        level: str = "info",
        has_addresses: bool = True,
        max_backlog: int = _MAX_BACKLOG,
    ) -> None:
        super().__init__(level.upper())
        self.setFormatter(_PersonFormatter() if for_person else _JsonFormatter())
        self._stream = stream
        self._clock = clock
        self._encode = _encode_for_person if for_person else _encoder.encode_lines
        self._takes_requests = self.level <= logging.INFO
        self._has_addresses = has_addresses
        self._lines: deque[Line] = deque()
        self._max_backlog = max_backlog
        self._dropped = 0
        self._moment = (0, "")
        self._stop = threading.Event()
        # Starts with the first line: the supervisor has a log, and must fork without threads.
        self._thread: threading.Thread | None = None

    def add(self, line: RequestLine) -> None:
        if not self._takes_requests or (line.status == _OK and line.route in _HEALTH_CHECKS):
            return
        now = self._clock()
        if now != self._moment[0]:
            self._moment = now, f"{rfc3339(now)[:-1]}.{now % SECOND:03d}Z"
        line.time = self._moment[1]
        if not self._has_addresses:
            line.client = None
        self._append(line)

    def emit(self, record: logging.LogRecord) -> None:
        self._append(self._raw(record))

    def close(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(_FLUSH_SECONDS * 10)
        super().close()

    def _append(self, line: Line) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._write, name="request-log", daemon=True)
            self._thread.start()
        if len(self._lines) < self._max_backlog:
            self._lines.append(line)
        else:
            self._dropped += 1

    def _write(self) -> None:
        # A signal taken by this thread would reach the main thread after later ones.
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        is_stopping = False
        while not is_stopping:
            is_stopping = self._stop.wait(_FLUSH_SECONDS)
            lines = [self._lines.popleft() for _ in range(len(self._lines))]
            dropped, self._dropped = self._dropped, 0
            at_risk = len(lines) + dropped
            if dropped:
                message = f"{dropped} lines dropped"
                warning = {"name": __name__, "levelname": "WARNING", "msg": message}
                lines.append(self._raw(logging.makeLogRecord(warning)))
            if lines:
                try:
                    self._stream.write(self._encode(lines))
                    self._stream.flush()
                except OSError:  # a full disk, say, may have room again later
                    self._dropped += at_risk

    def _raw(self, record: logging.LogRecord) -> msgspec.Raw:
        return msgspec.Raw(self.format(record).encode())


def standard_error() -> BinaryIO:
    """Return standard error as a stream of its own: a stalled write locks no other."""
    return open(_STANDARD_ERROR, "wb", closefd=False)


def is_for_person(log_format: str) -> bool:
    return sys.stderr.isatty() if log_format == "auto" else log_format == "text"


def configure_logging(log: RequestLog) -> None:
    # ``basicConfig`` would close other handlers. One inherited by a fork may have lost its thread
    # with a lock held, and closing it would wait for that lock.
    root = logging.getLogger()
    root.handlers[:] = [log]
    root.setLevel(log.level)


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, int | str] = {
            "time": rfc3339(int(record.created * SECOND)),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        if isinstance(event := record.msg, LogEvent):
            line |= {"event": event.name, "message": str(event), **event.members}
        line["logger"] = record.name
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return _encoder.encode(line).decode()


class _PersonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        level = f"{record.levelname.lower():8}"
        time = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S")
        line = f"{time} {level} {record.getMessage()}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


def _encode_for_person(lines: Iterable[Line]) -> bytes:
    return b"".join(
        _request_text(line) if isinstance(line, RequestLine) else bytes(line) + b"\n"
        for line in lines
    )


def _request_text(line: RequestLine) -> bytes:
    who = f"key={'-' if line.key is None else line.key}"
    if line.person is not None:
        who = f"person={line.person}"
    elif line.login:
        who = f"login={line.login}"
    operation = line.operation or line.route or "-"
    reason = "" if line.code is None else f" {line.code}"
    limit = "" if line.limit is None else f" ({line.limit})"
    return (
        f"{line.time[11:19]} {line.status} {line.method:6} {operation:12}"
        f" {who} {line.client or '-'} {line.milliseconds:.2f} ms {line.bytes} B"
        f" {line.request}{reason}{limit}\n"
    ).encode()
