"""The HTTP server, with two of its ways at a stop mended."""

import asyncio
import logging
import signal
import time
from collections.abc import Callable
from functools import partial

from granian import _signals
from granian._granian import WorkerSignal
from granian.server.mp import MPServer

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_LOG = logging.getLogger(__name__)


class Server(MPServer):
    """Granian, that says in words of ours what a stop has cut off.

    Its own warning comes now and then after a stop that cut off nothing.
    """

    def _stop_workers(self) -> None:
        started = time.monotonic()
        super()._stop_workers()  # type: ignore[no-untyped-call]
        patience = self.workers_kill_timeout or 0
        if time.monotonic() - started >= patience:
            _LOG.warning("what was under way %d s after the stop signal was cut off", patience)


def take_one_stop_signal(end: Callable[[], None], seconds: float) -> None:
    """Let a worker take the first stop signal, ignore those after it, and ``end`` in time.

    Granian's own handler blocks for ever on a second one; and at Ctrl-C a worker gets two, one from
    the terminal and one from its parent. And it waits for every connection, so that one which never
    finishes its request would keep the worker from ending cleanly until it is killed.
    """
    for number in _STOP_SIGNALS:
        # Until the server takes them here too, the parent's handlers would swallow them.
        signal.signal(number, signal.SIG_DFL)
    _signals.set_loop_signals = partial(_set_loop_signals, end=end, seconds=seconds)


def _set_loop_signals(
    loop: asyncio.AbstractEventLoop, end: Callable[[], None], seconds: float
) -> WorkerSignal:
    stop = WorkerSignal()
    is_taken = False

    def take() -> None:
        nonlocal is_taken
        if not is_taken:
            is_taken = True
            loop.call_later(seconds, end)
            stop.set()

    for number in _STOP_SIGNALS:
        loop.add_signal_handler(number, take)
    return stop
