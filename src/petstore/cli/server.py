"""The HTTP server, with two of its ways at a stop mended."""

import asyncio
import logging
import signal
import socket
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from granian import _signals
from granian._granian import WorkerSignal
from granian.server.mp import MPServer

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_LOG = logging.getLogger(__name__)


class Server(MPServer):
    """Granian, with one listening socket for all workers, and a stop that says what it cut off.

    On Linux Granian gives each worker a socket of its own. Who is waiting at that of a worker which
    is replaced would be turned away; at a common one the next worker takes them. Its own warning
    about a stop comes now and then after one that cut off nothing.
    """

    # Granian's own, without types: its workers; how to make the socket, the socket, its number, a
    # view of it.
    wrks: list[Any]
    _ssp: Any
    _shd: Any
    _sfd: Any
    _sso: Any

    def _init_shared_socket(self) -> None:
        super()._init_shared_socket()  # type: ignore[no-untyped-call]
        self._shd = self._ssp.build()
        self._sfd, self._ssp = self._shd.get_fd(), None
        self._sso = socket.socket(fileno=self._sfd)
        self._sso.set_inheritable(True)

    def _respawn_workers(
        self, workers: list[int], spawn_target: Any, target_loader: Any, delay: float = 0
    ) -> None:
        if self.workers == 1:
            # Its counts may be in its memory alone until it ends, so the next one has to wait for
            # that. Meanwhile callers wait at the common socket.
            for worker in self.wrks:
                worker.terminate()
                worker.join(self.workers_kill_timeout)
                worker.kill()
                worker.join()
            delay = 0
        super()._respawn_workers(workers, spawn_target, target_loader, delay)

    def _stop_workers(self) -> None:
        started = time.monotonic()
        super()._stop_workers()  # type: ignore[no-untyped-call]
        patience = self.workers_kill_timeout or 0
        if time.monotonic() - started >= patience:
            _LOG.warning("what was under way %d s after the stop signal was cut off", patience)


class Stop(NamedTuple):
    """How a worker stops: it ``retires``, serves on for some seconds, and ``ends`` in time."""

    retire: Callable[[], None]
    lame_seconds: float
    end: Callable[[], None]
    end_seconds: float


def take_one_stop_signal(stop: Stop) -> None:
    """Let a worker take the first stop signal, and ignore those after it.

    Granian's own handler blocks for ever on a second one; and at Ctrl-C a worker gets two, one from
    the terminal and one from its parent. And it waits for every connection, so that one which never
    finishes its request would keep the worker from ending cleanly until it is killed.
    """
    for number in _STOP_SIGNALS:
        # Until the server takes them here too, the parent's handlers would swallow them.
        signal.signal(number, signal.SIG_DFL)
    _signals.set_loop_signals = partial(_set_loop_signals, how=stop)


def _set_loop_signals(loop: asyncio.AbstractEventLoop, how: Stop) -> WorkerSignal:
    stop = WorkerSignal()
    is_taken = False

    def take() -> None:
        nonlocal is_taken
        if not is_taken:
            is_taken = True
            how.retire()
            loop.call_later(how.end_seconds, how.end)
            loop.call_later(how.lame_seconds, stop.set)

    for number in _STOP_SIGNALS:
        loop.add_signal_handler(number, take)
    return stop
