"""The log of a running service: it may be rotated, and read by nobody."""

import fcntl
import json
import os
from pathlib import Path

import httpx

from support.process import StartServer, servers_in
from support.stores import locked
from support.waiting import within


def test_a_log_file_opened_for_appending_can_be_truncated_while_the_service_runs(
    start: StartServer, tmp_path: Path
) -> None:
    path = tmp_path / "petstore.log"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    service = start(stderr=descriptor)
    os.close(descriptor)

    def is_logged(request_id: str) -> bool:
        """Send a request and wait for its line; no other is under way then."""
        httpx.get(f"{service.url}/v1/pets", headers={"X-Request-Id": request_id})
        return within(30, lambda: request_id in path.read_text())

    assert is_logged("before")
    os.truncate(path, 0)
    assert is_logged("after")
    assert "before" not in path.read_text()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert "after" in {line["request"] for line in lines if line["event"] == "request"}


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
