"""Logs: for a person on a terminal, one JSON object a line otherwise. Never a token or a body.

The line of a request is written on a path of its own: it costs a fraction of what ``logging``
takes, and a reader of the log that stalls does not stall the service.
"""

import logging
import sys
import threading
from collections import deque
from datetime import UTC, datetime
from typing import BinaryIO

import msgspec

from petstore.clock import SECOND, Clock, Milliseconds

_LONGEST_BACKLOG = 100_000
_FLUSH_SECONDS = 0.1
_LEVEL_COLORS = {"WARNING": "33", "ERROR": "31", "CRITICAL": "31"}

_encode = msgspec.json.Encoder().encode


class RequestLine(msgspec.Struct, frozen=True):
    """What is logged of a request. ``key`` is the id of its API key, never the token."""

    time: str
    request: str
    key: int | None
    method: str
    operation: str | None
    status: int
    milliseconds: float
    level: str = "info"
    event: str = "request"


class RequestLog:
    """Writes request lines to ``stream`` from a thread.

    While the stream stalls or fails, lines beyond ``longest_backlog`` are dropped and counted.
    """

    def __init__(
        self,
        stream: BinaryIO,
        clock: Clock,
        *,
        for_person: bool,
        longest_backlog: int = _LONGEST_BACKLOG,
    ) -> None:
        self._stream = stream
        self._clock = clock
        self._format = _for_person if for_person else _encode
        self._lines: deque[bytes] = deque()
        self._longest_backlog = longest_backlog
        self._dropped = 0
        self._second = (0, "")
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._write, name="request-log", daemon=True)
        self._thread.start()

    def add(
        self,
        request_id: str,
        key_id: int | None,
        method: str,
        operation: str | None,
        status: int,
        seconds: float,
    ) -> None:
        """Log a request that took ``seconds``."""
        if len(self._lines) >= self._longest_backlog:
            self._dropped += 1
            return
        line = RequestLine(
            self._now(), request_id, key_id, method, operation, status, round(seconds * 1e3, 3)
        )
        self._lines.append(self._format(line))

    def close(self) -> None:
        """Write what is left."""
        self._stop.set()
        self._thread.join(_FLUSH_SECONDS * 10)

    def _now(self) -> str:
        now = self._clock()
        second, millisecond = divmod(now, SECOND)
        if second != self._second[0]:
            self._second = (second, _rfc3339(second * SECOND)[:-1])
        return f"{self._second[1]}.{millisecond:03d}Z"

    def _write(self) -> None:
        stopping = False
        while not stopping:
            stopping = self._stop.wait(_FLUSH_SECONDS)
            lines = [self._lines.popleft() for _ in range(len(self._lines))]
            if self._dropped:
                logging.getLogger(__name__).warning("%d request lines dropped", self._dropped)
                self._dropped = 0
            if lines:
                try:
                    self._stream.write(b"\n".join(lines) + b"\n")
                    self._stream.flush()
                except OSError:  # a full disk, say, may have room again later
                    self._dropped += len(lines)


def configure_logging(*, for_person: bool) -> None:
    """Send every log record to standard error, in the form that suits who reads it."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_PersonFormatter() if for_person else _JsonFormatter())
    logging.basicConfig(handlers=[handler], level=logging.INFO, force=True)


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": _rfc3339(int(record.created * SECOND)),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            "logger": record.name,
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return _encode(line).decode()


class _PersonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        color = _LEVEL_COLORS.get(record.levelname, "0")
        time = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S")
        line = f"{time} \x1b[{color}m{record.levelname.lower():8}\x1b[0m {record.getMessage()}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


def _for_person(line: RequestLine) -> bytes:
    color = {2: "32", 3: "36", 4: "33"}.get(line.status // 100, "31")
    key = "-" if line.key is None else line.key
    operation = line.operation or "-"
    return (
        f"{line.time[11:19]} \x1b[{color}m{line.status}\x1b[0m {line.method:6} {operation:12}"
        f" key={key} {line.milliseconds:.2f} ms {line.request}"
    ).encode()


def _rfc3339(moment: Milliseconds) -> str:
    text = datetime.fromtimestamp(moment / SECOND, UTC).isoformat(timespec="seconds")
    return text.replace("+00:00", "Z")
