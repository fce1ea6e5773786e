"""An unread log must not block the service."""

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from support.process import ServerProcess
from support.servers import servers_in
from support.stores import locked


@pytest.fixture
def unread(tmp_path: Path) -> Iterator[ServerProcess]:
    """A service that logs into a pipe that is full, and waits for its database a little only."""
    reader, writer = os.pipe()
    os.write(writer, bytes(fcntl.fcntl(writer, fcntl.F_GETPIPE_SZ)))
    buffered = {"PYTHONUNBUFFERED": ""}  # as it is unless somebody sets it
    with servers_in(tmp_path) as start:
        yield start("--database-timeout", "0.2", env=buffered, stderr=writer)
        os.close(reader)
    os.close(writer)


def test_a_service_whose_log_nobody_reads_goes_on_though_it_has_to_warn(
    unread: ServerProcess, tmp_path: Path
) -> None:
    headers = {"Authorization": f"Bearer {unread.issue()}"}
    new = {"name": "Rex", "categoryId": 1}
    with httpx.Client(base_url=unread.url, headers=headers) as client:
        with locked(tmp_path / "petstore.db"):
            for _ in range(3):
                assert client.post("/v1/pets", json=new).status_code == 503
        assert client.get("/healthz").status_code == 200
        assert client.post("/v1/pets", json=new).status_code == 201


def test_a_service_with_an_unread_log_stops_at_a_signal(unread: ServerProcess) -> None:
    assert unread.stop() == 0
