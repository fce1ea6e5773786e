"""An unread log must not block the service."""

import fcntl
import os
from pathlib import Path

import httpx

from support.process import servers_in
from support.stores import locked


def test_a_service_with_an_unread_log_pipe_serves_and_stops_at_a_signal(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.write(writer, bytes(fcntl.fcntl(writer, fcntl.F_GETPIPE_SZ)))
    buffered = {"PYTHONUNBUFFERED": ""}  # as it is unless somebody sets it
    new = {"name": "Rex", "categoryId": 1}
    with servers_in(tmp_path) as start:
        service = start("--database-timeout", "0.2", env=buffered, stderr=writer)
        headers = {"Authorization": f"Bearer {service.issue()}"}
        with httpx.Client(base_url=service.url, headers=headers) as client:
            with locked(tmp_path / "petstore.db"):
                for _ in range(3):
                    assert client.post("/v1/pets", json=new).status_code == 503
            assert client.get("/healthz").status_code == 200
            assert client.post("/v1/pets", json=new).status_code == 201
        assert service.stop() == 0
        os.close(reader)
    os.close(writer)
