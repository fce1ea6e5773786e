"""The events of a service, for its log and its service manager."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from petstore.server.supervisor import notify

_ABSTRACT_NAME = f"@petstore-test-{os.getpid()}"


@contextmanager
def receiver(address: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(address.replace("@", "\0"))
        yield listening


def test_a_notify_socket_at_a_path_gets_all_assignments_in_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with receiver(str(tmp_path / "notify"), monkeypatch) as manager:
        notify("READY=1", "STATUS=Serving")
        assert manager.recv(100) == b"READY=1\nSTATUS=Serving"


def test_a_notify_socket_at_an_abstract_address_is_notified(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with receiver(_ABSTRACT_NAME, monkeypatch) as manager:
        notify("STOPPING=1")
        assert manager.recv(100) == b"STOPPING=1"


def test_a_missing_notify_socket_is_not_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "gone"))
    notify("READY=1")


@pytest.mark.timeout(60)
def test_a_notify_socket_that_does_not_read_is_not_awaited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with receiver(str(tmp_path / "notify"), monkeypatch) as manager:
        for number in range(2_000):  # more than any system keeps
            notify(f"STATUS={number}")
        assert manager.recv(100) == b"STATUS=0"


def test_without_a_service_manager_nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    notify("READY=1")
