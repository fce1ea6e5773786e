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
from typing import Protocol, TypeAlias

from petstore.server.lifecycle import Lifecycle

Link: TypeAlias = connection.Connection
"""Joins the process that supervises and one that serves; they send each other messages."""

READY, SERVE, LEAVE = b"ready", b"serve", b"leave"

_STOPS = frozenset({signal.SIGINT, signal.SIGTERM})
_HEEDED = (signal.SIGHUP, *_STOPS)
# A process that cannot serve by then hangs, at a file or a server that does not answer.
_START_SECONDS = 60
# How soon after a process began to serve, or tried to, another may do so in its place.
_PAUSE_SECONDS = 1
_PR_SET_PDEATHSIG = 1
_LOG = logging.getLogger(__name__)
_fork = get_context("fork")


class Serve(Protocol):
    """What a process does: it prepares, serves when it is told to, and ends when it is told to."""

    def __call__(self, seat: int, link: Link) -> None:
        """Serve at ``seat``, a number that no other process has meanwhile.

        Over ``link`` it sends ``READY`` once it could serve, or why it cannot. It serves from
        ``SERVE`` on, and ends some time after ``LEAVE`` or a stop signal.
        """
        ...


class Supervisor:
    """Keeps so many processes serving until a stop signal (SIGINT or SIGTERM).

    One that ends unasked is replaced. At SIGHUP each is replaced, one after another: the next
    process prepares, then the old one is asked to leave, and once it has ended the next one serves.
    So no more than ``count`` ever serve, and if the next one cannot, the old one stays. One that
    has not ended ``patience`` seconds after it was asked to is killed, and so is one that hangs as
    it prepares.
    """

    def __init__(
        self,
        serve: Serve,
        count: int,
        patience: float,
        on_stop: Callable[[], None],
        lifecycle: Lifecycle,
    ) -> None:
        self._serve = serve
        self._count = count
        self._patience = patience
        self._on_stop = on_stop
        self._lifecycle = lifecycle
        self._workers: list[_Worker] = []
        self._starts_at = 0.0
        self._has_started = False
        self._is_reloading = False
        self._is_stopping = False
        self._status = 0

    def run(self) -> int:
        """Supervise until a stop signal and the end of all; return the exit status of the whole."""
        with _received_signals() as received:
            self._lifecycle.starting()
            while self._settle(received):
                connection.wait([received.fileno(), *self._awaited()], self._seconds_until_due())
        self._lifecycle.stopped(self._status)
        return self._status

    def _reload(self) -> None:
        self._is_reloading = True
        for worker in self._workers:
            worker.is_outdated = True
        self._lifecycle.reload_requested()

    def _give_up_reload(self, reason: str) -> None:
        self._is_reloading = False
        for worker in self._workers:
            worker.is_outdated = False
        self._lifecycle.reload_failed(reason)

    def _stop(self) -> None:
        if not self._is_stopping:
            self._is_stopping = True
            self._lifecycle.stopping()
            self._on_stop()
            for worker in self._workers:
                worker.ask_to_end(self._patience)

    def _settle(self, received: "_Signals") -> bool:
        """Do what is due now, and tell whether anything is left to supervise."""
        # Signals are read after this: one that ended by a stop signal to all did not end unasked.
        ended = [worker for worker in self._workers if worker.has_ended]
        numbers = received.take()
        if numbers & _STOPS:
            self._stop()
        elif numbers and not self._is_stopping:
            self._reload()
        for worker in ended:
            self._workers.remove(worker)
            self._note_end(worker)
        for worker in self._workers:
            worker.kill_if_late()
        if self._is_stopping:
            return self._workers != []
        self._replace_next()
        if len(self._workers) < self._wanted and time.monotonic() >= self._starts_at:
            self._fill_seats()
        self._let_serve()
        self._note_progress()
        return True

    @property
    def _wanted(self) -> int:
        """How many processes there should be: those that serve and in a reload the next one."""
        return self._count + any(worker.is_outdated for worker in self._workers)

    def _note_end(self, worker: "_Worker") -> None:
        if self._is_stopping:
            return
        if worker.is_leaving:
            self._lifecycle.worker_replaced(worker.pid)
            return
        self._lifecycle.worker_ended(worker.pid, worker.outcome)
        self._starts_at = worker.started + _PAUSE_SECONDS
        if worker.is_ready:
            return
        if not any(other.is_ready for other in self._workers):
            _LOG.error("no process can serve: the service ends")
            self._status = 1
            self._stop()
        elif self._is_reloading:
            self._give_up_reload(f"process {worker.pid} did not start: {worker.outcome}")

    def _replace_next(self) -> None:
        are_well = all(worker.is_ready and not worker.is_leaving for worker in self._workers)
        outdated = [worker for worker in self._workers if worker.is_outdated]
        if outdated and are_well and len(self._workers) > self._count:
            outdated[0].ask_to_leave(self._patience)

    def _fill_seats(self) -> None:
        free = set(range(self._wanted)) - {worker.seat for worker in self._workers}
        missing = self._wanted - len(self._workers)
        try:
            for seat in sorted(free)[:missing]:
                self._workers.append(_Worker(self._serve, seat))
        except OSError as error:  # out of memory or of files, say; there may be some later
            _LOG.error("no process can be started: %s", error)
            self._starts_at = time.monotonic() + _PAUSE_SECONDS
            if self._is_reloading:
                self._give_up_reload(f"no process can be started: {error}")

    def _let_serve(self) -> None:
        serving = sum(worker.may_serve for worker in self._workers)
        waiting = [worker for worker in self._workers if not worker.may_serve]
        for worker in waiting[: self._count - serving]:
            worker.let_serve()

    def _note_progress(self) -> None:
        are_settled = all(worker.is_ready and worker.is_current for worker in self._workers)
        if len(self._workers) != self._count or not are_settled:
            return
        if not self._has_started:
            self._has_started = True
            self._lifecycle.started()
        if self._is_reloading:
            self._is_reloading = False
            self._lifecycle.reload_ended()

    def _awaited(self) -> Iterator[int | Link]:
        for worker in self._workers:
            yield worker.sentinel
            if not worker.is_ready:
                yield worker.link

    def _seconds_until_due(self) -> float | None:
        due = min((worker.ends_by for worker in self._workers), default=math.inf)
        if len(self._workers) < self._wanted and not self._is_stopping:
            due = min(due, self._starts_at)
        return None if due == math.inf else max(0, due - time.monotonic())


class _Worker:
    """A process that serves or prepares to.

    ``ends_by`` is when it is killed if it is to end, or to be ready, and is not.
    """

    def __init__(self, serve: Serve, seat: int) -> None:
        self.seat = seat
        self.started = time.monotonic()
        self.ends_by = self.started + _START_SECONDS
        self.is_outdated = False
        self.is_leaving = False
        self.may_serve = False
        self._was_ready = False
        self._complaint = ""
        self.link, theirs = Pipe()
        with theirs:
            self._process = _fork.Process(target=_work, args=(serve, seat, theirs), daemon=True)
            # Until it is ready for a signal of its own it must not take one by our handlers.
            signal.pthread_sigmask(signal.SIG_BLOCK, _HEEDED)
            try:
                self._process.start()
            finally:
                signal.pthread_sigmask(signal.SIG_UNBLOCK, _HEEDED)
        self.sentinel = self._process.sentinel

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid or 0

    @property
    def is_ready(self) -> bool:
        """Whether it ever said that it can serve; if it said why not, ``outcome`` tells."""
        if not self._was_ready and self.link.poll():
            with suppress(EOFError, ConnectionError):  # it ended before it could
                said = self.link.recv_bytes()
                self._was_ready = said == READY
                self._complaint = "" if self._was_ready else said.decode()
                if self._was_ready and not self.is_leaving:
                    self.ends_by = math.inf
        return self._was_ready

    @property
    def is_current(self) -> bool:
        """Whether it is to go on as it is."""
        return not (self.is_outdated or self.is_leaving)

    @property
    def has_ended(self) -> bool:
        return not self._process.is_alive()

    @property
    def outcome(self) -> str:
        if not self.is_ready and self._complaint:
            return self._complaint
        status = self._process.exitcode or 0
        return f"exit status {status}" if status >= 0 else f"killed by signal {-status}"

    def let_serve(self) -> None:
        self.may_serve = True
        self._send(SERVE)

    def ask_to_leave(self, patience: float) -> None:
        """Have it end because another takes its place."""
        self._expect_end(patience)
        self._send(LEAVE)

    def ask_to_end(self, patience: float) -> None:
        """Have it end because the service stops."""
        self._expect_end(patience)
        self._process.terminate()

    def kill_if_late(self) -> None:
        awaited = "end" if self.is_ready or self.is_leaving else "start"
        if time.monotonic() >= self.ends_by:
            self.ends_by = math.inf
            _LOG.warning("process %d did not %s in time: killed", self.pid, awaited)
            self._process.kill()

    def _expect_end(self, patience: float) -> None:
        self.is_leaving = True
        self.ends_by = time.monotonic() + patience

    def _send(self, order: bytes) -> None:
        with suppress(ConnectionError):  # it has just ended
            self.link.send_bytes(order)


def _work(serve: Serve, seat: int, link: Link) -> None:
    """Serve, in a process that takes no signal any more as the one does that it was forked from."""
    if sys.platform == "linux":
        # It must not outlive that one if it is killed: it would keep the port.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _HEEDED)
    serve(seat, link)


class _Signals:
    """The signals that came and were not taken yet. ``reader`` can be read once there are any.

    What is written to it is not what came: if there are so many that some do not fit in, those that
    count must not be lost.
    """

    def __init__(self, reader: socket.socket) -> None:
        self._reader = reader
        self._numbers: set[int] = set()

    def note(self, number: int, _: object) -> None:
        """Take a signal; the system wakes whoever waits for ``reader``."""
        self._numbers.add(number)

    def fileno(self) -> int:
        """Return what to wait for."""
        return self._reader.fileno()

    def take(self) -> set[int]:
        """Return those that came since the last time."""
        with suppress(BlockingIOError):
            self._reader.recv(4096)
        numbers, self._numbers = self._numbers, set()
        return numbers


@contextmanager
def _received_signals() -> Iterator[_Signals]:
    """Take signals, until the block ends."""
    reader, writer = socket.socketpair()
    with reader, writer:
        reader.settimeout(0)
        writer.settimeout(0)
        signals = _Signals(reader)
        signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
        for number in _HEEDED:
            signal.signal(number, signals.note)
        try:
            yield signals
        finally:
            signal.set_wakeup_fd(-1)
            for number in _HEEDED:  # a further one must not end what is about to end well
                signal.signal(number, signal.SIG_IGN)
