"""A proxy that swallows what is sent through it."""

import socket
from threading import Thread

from proof.black_hole import BlackHole


def echo(listener: socket.socket, connections: int) -> None:
    """Send back what arrives on so many connections."""

    def send_back(client: socket.socket) -> None:
        with client:
            while data := client.recv(100):
                client.sendall(data)

    for _ in range(connections):
        Thread(target=send_back, args=(listener.accept()[0],), daemon=True).start()


def responds(connection: socket.socket, seconds: float) -> bool:
    """Return whether what is sent comes back."""
    connection.settimeout(seconds)
    try:
        connection.sendall(b"x")
        return connection.recv(100) == b"x"
    except TimeoutError:
        return False


def test_a_connection_that_lost_data_stays_silent_and_a_later_one_is_served() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        Thread(target=echo, args=(listener, 2), daemon=True).start()
        with BlackHole(listener.getsockname()[1]).running() as hole:
            address = ("127.0.0.1", hole.port)
            with socket.create_connection(address) as before:
                assert responds(before, 30)
                with hole.swallowing(), socket.create_connection(address) as during:
                    assert not responds(before, 0.1)
                    assert not responds(during, 0.1)
                assert not responds(before, 0.1)
                with socket.create_connection(address) as after:
                    assert responds(after, 30)
