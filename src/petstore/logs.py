"""Logs: for a person on a terminal, one JSON object a line otherwise. Never a token or a body.

The line of a request is made without ``logging``, at a fraction of the cost. All lines are written
by one thread, so a reader of the log that stalls does not stall the service; it encodes many at
once, which costs less than half of encoding each.
"""

import logging
import signal
import sys
import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import BinaryIO, Literal, TypeAlias

import msgspec

from petstore.clock import SECOND, Clock, rfc3339

_LONGEST_BACKLOG = 100_000
_FLUSH_SECONDS = 0.1
_STANDARD_ERROR = 2
_HEALTH_CHECKS = frozenset({"/healthz", "/readyz"})
_OK = 200
_LEVEL_COLORS = {"WARNING": "33", "ERROR": "31", "CRITICAL": "31"}

_encoder = msgspec.json.Encoder()


EventName: TypeAlias = Literal[
    "started",
    "start_failed",
    "worker_ended",
    "reload_started",
    "worker_replaced",
    "reload_ended",
    "reload_failed",
    "stop_started",
    "stopped",
]
"""What happens to the service as a whole. Programs wait for these names, so they stay."""


class Event:
    """The message of a record that has a name and members of its own, beside words for a person."""

    def __init__(self, name: EventName, message: str, **members: int | str) -> None:
        self.name = name
        self.members = members
        self._message = message

    def __str__(self) -> str:
        return self._message


class RequestLine(msgspec.Struct, kw_only=True, gc=False):
    """What is logged of a request; docs/logs.md says what each member is.

    ``key`` is the id of its API key, never the token. ``route`` is a template, never the path. The
    log adds the ``time``.
    """

    time: str = ""
    request: str
    client: str | None
    key: int | None
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


@dataclass(frozen=True)
class LogRules:
    """What is logged: records from a level on, health checks that succeed, client addresses."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    health_checks: bool = False
    addresses: bool = True


Line: TypeAlias = RequestLine | msgspec.Raw
"""A line to be: of a request, or of a record that is formatted already."""


class RequestLog:
    """Writes lines to ``stream`` from a thread, those of requests and those of ``logging``.

    While the stream stalls or fails, lines beyond ``longest_backlog`` are dropped and counted.
    """

    def __init__(
        self,
        stream: BinaryIO,
        clock: Clock,
        *,
        for_person: bool,
        rules: LogRules = LogRules(),
        longest_backlog: int = _LONGEST_BACKLOG,
    ) -> None:
        self._stream = stream
        self._clock = clock
        self._encode = _for_person if for_person else _encoder.encode_lines
        self._formatter = _formatter(for_person=for_person)
        self.level = logging.getLevelNamesMapping()[rules.level.upper()]
        self._takes_requests = self.level <= logging.INFO
        self._unlogged = frozenset() if rules.health_checks else _HEALTH_CHECKS
        self._has_addresses = rules.addresses
        self._lines: deque[Line] = deque()
        self._longest_backlog = longest_backlog
        self._dropped = 0
        self._moment = (0, "")
        self._stop = threading.Event()
        # Started with the first line: a process that is to fork may have a log, and no thread.
        self._thread: threading.Thread | None = None

    def add(self, line: RequestLine) -> None:
        """Log a request that was answered just now."""
        if not self._takes_requests or (line.status == _OK and line.route in self._unlogged):
            return
        line.time = self._now()
        if not self._has_addresses:
            line.client = None
        self._append(line)

    def add_record(self, record: logging.LogRecord) -> None:
        """Log a record of ``logging``."""
        self._append(self._formatted(record))

    def close(self) -> None:
        """Write what is left."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(_FLUSH_SECONDS * 10)

    def _append(self, line: Line) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._write, name="request-log", daemon=True)
            self._thread.start()
        if len(self._lines) < self._longest_backlog:
            self._lines.append(line)
        else:
            self._dropped += 1

    def _now(self) -> str:
        now = self._clock()
        if now != self._moment[0]:
            self._moment = now, f"{rfc3339(now)[:-1]}.{now % SECOND:03d}Z"
        return self._moment[1]

    def _write(self) -> None:
        # A signal that this thread took would reach the main thread later than what followed it.
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        stopping = False
        while not stopping:
            stopping = self._stop.wait(_FLUSH_SECONDS)
            lines = [self._lines.popleft() for _ in range(len(self._lines))]
            dropped, self._dropped = self._dropped, 0
            report = [self._tell_of(dropped)] if dropped else []
            if lines or report:
                try:
                    self._stream.write(self._encode([*lines, *report]))
                    self._stream.flush()
                except OSError:  # a full disk, say, may have room again later
                    self._dropped += dropped + len(lines)

    def _tell_of(self, dropped: int) -> msgspec.Raw:
        record = {
            "name": __name__,
            "levelno": logging.WARNING,
            "levelname": "WARNING",
            "msg": "%d lines dropped",
            "args": (dropped,),
        }
        return self._formatted(logging.makeLogRecord(record))

    def _formatted(self, record: logging.LogRecord) -> msgspec.Raw:
        return msgspec.Raw(self._formatter.format(record).encode())


def standard_error() -> BinaryIO:
    """Return standard error as a stream of its own: a write that stalls locks nobody else's."""
    return open(_STANDARD_ERROR, "wb", closefd=False)


def is_for_person(log_format: str) -> bool:
    """Tell whether a log is read by a person: its format is ``text``, or ``auto`` on a terminal."""
    return sys.stderr.isatty() if log_format == "auto" else log_format == "text"


def record_text(record: logging.LogRecord, *, for_person: bool) -> str:
    """Return a record as the log has it."""
    return _formatter(for_person=for_person).format(record)


def configure_logging(log: RequestLog) -> None:
    """Send every record of ``logging`` to ``log``."""
    logging.basicConfig(handlers=[_LogHandler(log)], level=log.level, force=True)


class _LogHandler(logging.Handler):
    """Hands records on to a log, which does not wait for its reader."""

    def __init__(self, log: RequestLog) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        self._log.add_record(record)


def _formatter(*, for_person: bool) -> logging.Formatter:
    return _PersonFormatter() if for_person else _JsonFormatter()


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": rfc3339(int(record.created * SECOND)),
            "level": record.levelname.lower(),
            **_said(record),
            "logger": record.name,
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return _encoder.encode(line).decode()


def _said(record: logging.LogRecord) -> dict[str, int | str]:
    if isinstance(record.msg, Event):
        return {"event": record.msg.name, "message": str(record.msg), **record.msg.members}
    return {"event": record.getMessage()}


class _PersonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        color = _LEVEL_COLORS.get(record.levelname, "0")
        time = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S")
        line = f"{time} \x1b[{color}m{record.levelname.lower():8}\x1b[0m {record.getMessage()}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


def _for_person(lines: Iterable[Line]) -> bytes:
    return b"".join(
        _colored(line) if isinstance(line, RequestLine) else bytes(line) + b"\n" for line in lines
    )


def _colored(line: RequestLine) -> bytes:
    color = {2: "32", 3: "36", 4: "33"}.get(line.status // 100, "31")
    key = "-" if line.key is None else line.key
    operation = line.operation or line.route or "-"
    reason = "" if line.code is None else f" {line.code}"
    limit = "" if line.limit is None else f" ({line.limit})"
    return (
        f"{line.time[11:19]} \x1b[{color}m{line.status}\x1b[0m {line.method:6} {operation:12}"
        f" key={key} {line.client or '-'} {line.milliseconds:.2f} ms {line.bytes} B"
        f" {line.request}{reason}{limit}\n"
    ).encode()
