"""The sockets of a service, and what systemd passes and is told: sd_listen_fds(3), sd_notify(3)."""

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

from petstore.server import listeners
from petstore.server.listeners import inherited_listener, listen
from petstore.server.supervisor import notify
from support.process import free_port

LISTENING = "a listening TCP socket as file descriptor 3"


@pytest.fixture
def passed(monkeypatch: pytest.MonkeyPatch) -> Callable[[socket.socket], int]:
    """Takes a socket and passes it as systemd does; returns its descriptor, which stays open."""

    def pass_on(given: socket.socket) -> int:
        descriptor = os.open(os.devnull, os.O_RDONLY)
        os.dup2(given.fileno(), descriptor)  # children inherit it
        given.close()
        monkeypatch.setattr(listeners, "_INHERITED", descriptor)
        monkeypatch.setenv("LISTEN_PID", str(os.getpid()))
        monkeypatch.setenv("LISTEN_FDS", "1")
        monkeypatch.setenv("LISTEN_FDNAMES", "petstore")
        return descriptor

    return pass_on


def announced() -> set[str]:
    """Return the variables by which systemd announces sockets."""
    return {name for name in os.environ if name.startswith("LISTEN_")}


def test_a_listening_socket_is_taken_and_hidden_from_children(
    passed: Callable[[socket.socket], int],
) -> None:
    descriptor = passed(socket.create_server(("127.0.0.1", 0)))
    assert os.get_inheritable(descriptor)
    listener = inherited_listener()
    assert listener is not None
    with listener, socket.create_connection(listener.getsockname()):
        assert listener.fileno() == descriptor
        assert not listener.get_inheritable()
    assert announced() == set()
    assert inherited_listener() is None  # there is none any more


def test_a_socket_for_another_process_is_ignored(
    passed: Callable[[socket.socket], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    descriptor = passed(socket.create_server(("127.0.0.1", 0)))
    monkeypatch.setenv("LISTEN_PID", str(os.getppid()))
    assert inherited_listener() is None
    assert announced() == set()
    os.close(descriptor)  # it was left open


def no_socket() -> socket.socket:
    """Return what has the descriptor of a file."""
    given = socket.socket()
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, given.fileno())
    os.close(nothing)
    return given


@pytest.mark.parametrize(
    ("make", "count", "expected"),
    [
        (partial(socket.create_server, ("127.0.0.1", 0)), "2", "1 socket, not 2"),
        # It does not listen.
        (partial(socket.socket, socket.AF_INET, socket.SOCK_STREAM), "1", LISTENING),
        (partial(socket.socket, socket.AF_INET, socket.SOCK_DGRAM), "1", LISTENING),
        (partial(socket.socket, socket.AF_UNIX, socket.SOCK_STREAM), "1", LISTENING),
        (no_socket, "1", LISTENING),
    ],
)
def test_what_is_not_one_listening_tcp_socket_is_refused(
    passed: Callable[[socket.socket], int],
    monkeypatch: pytest.MonkeyPatch,
    make: Callable[[], socket.socket],
    count: str,
    expected: str,
) -> None:
    descriptor = passed(make())
    monkeypatch.setenv("LISTEN_FDS", count)
    with pytest.raises(OSError, match=f"^LISTEN_FDS: expected {expected}$"):
        inherited_listener()
    with suppress(OSError):  # it may be closed
        os.close(descriptor)


def test_the_host_may_be_a_name() -> None:
    port = free_port()
    with listen("localhost", port):
        socket.create_connection(("localhost", port)).close()


@contextmanager
def receiver(address: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(address.replace("@", "\0"))
        yield listening


def test_a_notify_socket_gets_all_assignments_in_one_message_and_may_be_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for address in (str(tmp_path / "notify"), f"@petstore-test-{os.getpid()}"):
        with receiver(address, monkeypatch) as manager:
            notify("READY=1", "STATUS=Serving")
            assert manager.recv(100) == b"READY=1\nSTATUS=Serving"
        notify("READY=1")


@pytest.mark.timeout(60)
def test_a_notify_socket_that_does_not_read_is_not_awaited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with receiver(str(tmp_path / "notify"), monkeypatch) as manager:
        for number in range(2_000):  # more than any system keeps
            notify(f"STATUS={number}")
        assert manager.recv(100) == b"STATUS=0"
