"""What a service manager is told, over the socket that it gave."""

import os
import socket
from pathlib import Path

import pytest

from petstore.server.service_manager import ServiceManager, service_manager

_NAME = f"@petstore-test-{os.getpid()}"


def test_a_receiver_at_a_path_gets_all_assignments_in_one_message(tmp_path: Path) -> None:
    path = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(path)
        ServiceManager(path).notify("READY=1", "STATUS=Serving")
        assert receiver.recv(100) == b"READY=1\nSTATUS=Serving"


def test_a_receiver_at_an_abstract_address_is_told_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", _NAME)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(f"\0{_NAME[1:]}")
        service_manager().notify("STOPPING=1")
        assert receiver.recv(100) == b"STOPPING=1"


def test_a_receiver_that_is_gone_is_no_failure(tmp_path: Path) -> None:
    ServiceManager(str(tmp_path / "gone")).notify("READY=1")


@pytest.mark.timeout(20)
def test_a_receiver_that_does_not_read_is_not_waited_for(tmp_path: Path) -> None:
    path = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(path)
        for number in range(2_000):  # more than any system keeps
            ServiceManager(path).notify(f"STATUS={number}")
        assert receiver.recv(100) == b"STATUS=0"


def test_without_a_manager_nobody_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    service_manager().notify("READY=1")
