"""The process that starts those that serve, replaces them and stops them."""

import ctypes
import logging
import math
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import Pipe, connection, get_context
from typing import Protocol

_HEEDED = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
# How soon after a process began to serve, or tried to, another may do so in its place.
_PAUSE_SECONDS = 1
_PR_SET_PDEATHSIG = 1
_LOG = logging.getLogger(__name__)
_fork = get_context("fork")


class Serve(Protocol):
    """What a process does: it serves, and returns some time after a stop signal."""

    def __call__(self, seat: int, say_ready: Callable[[], None]) -> None:
        """Serve at ``seat``, a number that no other process has meanwhile."""
        ...


class Supervisor:
    """Keeps so many processes serving until a stop signal (SIGINT or SIGTERM).

    One that ends unasked is replaced. At SIGHUP each is replaced, one after another: it is asked to
    end, and once it has, another starts at its seat; so no two are ever at one. One that has not
    ended ``patience`` seconds after it was asked to is killed.
    """

    def __init__(
        self,
        serve: Serve,
        count: int,
        patience: float,
        on_stop: Callable[[], None],
    ) -> None:
        self._serve = serve
        self._count = count
        self._patience = patience
        self._on_stop = on_stop
        self._workers: list[_Worker] = []
        self._starts_at = 0.0
        self._is_stopping = False
        self._status = 0

    def run(self) -> int:
        """Supervise until a stop signal and the end of all; return the exit status of the whole."""
        with _received_signals() as received:
            while self._settle():
                connection.wait([received, *self._awaited()], self._seconds_until_due())
                for number in _read(received):
                    self._renew() if number == signal.SIGHUP else self._stop()
        return self._status

    def _renew(self) -> None:
        for worker in self._workers:
            worker.is_outdated = True

    def _stop(self) -> None:
        if not self._is_stopping:
            self._is_stopping = True
            self._on_stop()
            for worker in self._workers:
                worker.ask_to_end(self._patience)

    def _settle(self) -> bool:
        """Do what is due now, and tell whether anything is left to supervise."""
        for worker in [worker for worker in self._workers if worker.has_ended]:
            self._workers.remove(worker)
            self._note_end(worker)
        for worker in self._workers:
            worker.kill_if_late()
        if self._is_stopping:
            return self._workers != []
        self._ask_next_outdated()
        if len(self._workers) < self._count and time.monotonic() >= self._starts_at:
            self._fill_seats()
        return True

    def _note_end(self, worker: "_Worker") -> None:
        if worker.is_leaving or self._is_stopping:
            return
        _LOG.error("process %d ended unasked: %s", worker.pid, worker.outcome)
        self._starts_at = worker.started + _PAUSE_SECONDS
        if not worker.is_ready and not any(other.is_ready for other in self._workers):
            _LOG.error("no process can serve: the service ends")
            self._status = 1
            self._stop()

    def _ask_next_outdated(self) -> None:
        are_well = all(worker.is_ready and not worker.is_leaving for worker in self._workers)
        outdated = [worker for worker in self._workers if worker.is_outdated]
        if outdated and are_well and len(self._workers) == self._count:
            outdated[0].ask_to_end(self._patience)

    def _fill_seats(self) -> None:
        free = set(range(self._count)) - {worker.seat for worker in self._workers}
        try:
            for seat in sorted(free):
                self._workers.append(_Worker(self._serve, seat))
        except OSError as error:  # out of memory or of files, say; there may be some later
            _LOG.error("no process can be started: %s", error)
            self._starts_at = time.monotonic() + _PAUSE_SECONDS

    def _awaited(self) -> Iterator[int | connection.Connection]:
        for worker in self._workers:
            yield worker.sentinel
            if not worker.is_ready:
                yield worker.readiness

    def _seconds_until_due(self) -> float | None:
        due = min((worker.ends_by for worker in self._workers), default=math.inf)
        if len(self._workers) < self._count and not self._is_stopping:
            due = min(due, self._starts_at)
        return None if due == math.inf else max(0, due - time.monotonic())


class _Worker:
    """A process that serves. ``ends_by`` is when it is killed, once it was asked to end."""

    def __init__(self, serve: Serve, seat: int) -> None:
        self.seat = seat
        self.started = time.monotonic()
        self.ends_by = math.inf
        self.is_outdated = False
        self.is_leaving = False
        self._was_ready = False
        self.readiness, said = Pipe(duplex=False)
        with said:
            self._process = _fork.Process(target=_work, args=(serve, seat, said), daemon=True)
            # Until it is ready for a signal of its own it must not take one by our handlers.
            signal.pthread_sigmask(signal.SIG_BLOCK, _HEEDED)
            try:
                self._process.start()
            finally:
                signal.pthread_sigmask(signal.SIG_UNBLOCK, _HEEDED)
        self.pid, self.sentinel = self._process.pid, self._process.sentinel

    @property
    def is_ready(self) -> bool:
        """Whether it ever said that it serves."""
        if not self._was_ready and self.readiness.poll():
            with suppress(EOFError):  # it ended before it could
                self._was_ready = self.readiness.recv_bytes() == b"ready"
        return self._was_ready

    @property
    def has_ended(self) -> bool:
        return not self._process.is_alive()

    @property
    def outcome(self) -> str:
        status = self._process.exitcode or 0
        return f"exit status {status}" if status >= 0 else f"killed by signal {-status}"

    def ask_to_end(self, patience: float) -> None:
        if not self.is_leaving:
            self.is_leaving = True
            self.ends_by = time.monotonic() + patience
            self._process.terminate()

    def kill_if_late(self) -> None:
        if time.monotonic() >= self.ends_by:
            self.ends_by = math.inf
            _LOG.warning("process %d did not end in time: killed", self.pid)
            self._process.kill()


def _work(serve: Serve, seat: int, said: connection.Connection) -> None:
    """Serve, in a process that takes no signal any more as the one does that it was forked from."""
    if sys.platform == "linux":
        # It must not outlive that one if it is killed: it would keep the port.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _HEEDED)
    serve(seat, lambda: said.send_bytes(b"ready"))


@contextmanager
def _received_signals() -> Iterator[socket.socket]:
    """Give a socket from which the numbers of signals can be read, a byte each."""
    reader, writer = socket.socketpair()
    with reader, writer:
        reader.settimeout(0)
        writer.settimeout(0)
        signal.set_wakeup_fd(writer.fileno())
        for number in _HEEDED:
            signal.signal(number, lambda *_: None)
        try:
            yield reader
        finally:
            signal.set_wakeup_fd(-1)
            for number in _HEEDED:  # a further one must not end what is about to end well
                signal.signal(number, signal.SIG_IGN)


def _read(received: socket.socket) -> bytes:
    try:
        return received.recv(64)
    except BlockingIOError:
        return b""
