"""The socket that systemd passes: sd_listen_fds(3)."""

import os
import socket
from collections.abc import Callable, Iterator

import pytest

from petstore.server import listeners
from petstore.server.listeners import inherited_listener


@pytest.fixture
def passed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[socket.socket], int]]:
    opened = []

    def pass_on(given: socket.socket) -> int:
        descriptor = os.open(os.devnull, os.O_RDONLY)
        os.dup2(given.fileno(), descriptor)  # children inherit it
        opened.append(given)
        monkeypatch.setattr(listeners, "_INHERITED", descriptor)
        variables = {
            "LISTEN_PID": str(os.getpid()),
            "LISTEN_FDS": "1",
            "LISTEN_FDNAMES": "petstore",
        }
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        return descriptor

    yield pass_on
    for given in opened:
        given.close()


def announced() -> set[str]:
    """Return the variables by which systemd announces sockets."""
    return {name for name in os.environ if name.startswith("LISTEN_")}


def test_a_listening_socket_is_taken_and_hidden_from_children(
    passed: Callable[[socket.socket], int],
) -> None:
    held = socket.create_server(("127.0.0.1", 0))
    descriptor = passed(held)
    assert os.get_inheritable(descriptor)
    listener = inherited_listener()
    assert listener is not None
    with listener, socket.create_connection(held.getsockname()):
        assert listener.fileno() == descriptor
        assert not listener.get_inheritable()
        assert listener.gettimeout() == 0
    assert announced() == set()


def test_without_a_socket_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in announced():
        monkeypatch.delenv(name)
    assert inherited_listener() is None


def test_a_socket_for_another_process_is_ignored(
    passed: Callable[[socket.socket], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    descriptor = passed(socket.create_server(("127.0.0.1", 0)))
    monkeypatch.setenv("LISTEN_PID", str(os.getppid()))
    assert inherited_listener() is None
    assert announced() == set()
    os.close(descriptor)  # it was left open


def test_more_than_one_socket_is_refused(
    passed: Callable[[socket.socket], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    descriptor = passed(socket.create_server(("127.0.0.1", 0)))
    monkeypatch.setenv("LISTEN_FDS", "2")
    with pytest.raises(OSError, match=r"^LISTEN_FDS: expected 1 socket, not 2$"):
        inherited_listener()
    os.close(descriptor)


@pytest.mark.parametrize(
    ("family", "kind"),
    [
        (socket.AF_INET, socket.SOCK_STREAM),  # it does not listen
        (socket.AF_INET, socket.SOCK_DGRAM),
        (socket.AF_UNIX, socket.SOCK_STREAM),
    ],
)
def test_what_is_no_listening_tcp_socket_is_refused(
    passed: Callable[[socket.socket], int], family: int, kind: int
) -> None:
    passed(socket.socket(family, kind))
    with pytest.raises(OSError, match=r"^LISTEN_FDS: expected a listening TCP socket as file"):
        inherited_listener()


def test_what_is_no_socket_is_refused(passed: Callable[[socket.socket], int]) -> None:
    descriptor = passed(socket.socket())
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, descriptor)
    os.close(nothing)
    with pytest.raises(OSError, match=r"^LISTEN_FDS: expected a listening TCP socket as file"):
        inherited_listener()
    os.close(descriptor)
