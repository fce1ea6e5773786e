"""A proxy that swallows: what passes, what is lost, and what stays silent for ever."""

import socket
from collections.abc import Iterator
from threading import Thread

import pytest

from proof.black_hole import BlackHole


@pytest.fixture
def hole() -> Iterator[BlackHole]:
    """A proxy before a server that sends back what it gets."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        Thread(target=serve, args=(listener,), daemon=True).start()
        with BlackHole(listener.getsockname()[1]).running() as hole:
            yield hole


def serve(listener: socket.socket) -> None:
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        Thread(target=echo, args=(client,), daemon=True).start()


def echo(client: socket.socket) -> None:
    with client:
        while data := client.recv(100):
            client.sendall(data)


def connect(hole: BlackHole) -> socket.socket:
    return socket.create_connection(("127.0.0.1", hole.port), timeout=30)


def is_silent(connection: socket.socket) -> bool:
    """Return whether nothing comes back."""
    connection.settimeout(0.1)
    try:
        connection.sendall(b"lost")
        return connection.recv(100) == b"never"
    except TimeoutError:
        return True


def test_it_hands_on_what_comes_both_ways(hole: BlackHole) -> None:
    with connect(hole) as connection:
        for text in (b"one", b"two"):
            connection.sendall(text)
            assert connection.recv(100) == text


def test_a_connection_that_lost_something_stays_silent_and_a_later_one_is_handed_on(
    hole: BlackHole,
) -> None:
    with connect(hole) as before:
        before.sendall(b"x")
        assert before.recv(1) == b"x"
        with hole.swallowing(), connect(hole) as during:
            assert is_silent(before)
            assert is_silent(during)
        assert is_silent(before)
        with connect(hole) as after:
            after.sendall(b"y")
            assert after.recv(1) == b"y"
