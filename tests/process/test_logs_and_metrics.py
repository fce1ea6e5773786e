"""What a running service tells: a line for each request, without a secret, and metrics."""

import fcntl
import json
import os
import re
import signal
from pathlib import Path

import httpx

from support.command import Command
from support.observed import Samples, read_metrics
from support.process import ServerProcess, StartServer, free_port, is_ready, servers_in
from support.redis_server import redis_server
from support.stores import locked
from support.terminal import Terminal
from support.waiting import within


def lines_of(server: ServerProcess, request: str) -> list[dict[str, object]]:
    def found() -> list[dict[str, object]]:
        return [line for line in server.log_lines() if line.get("request") == request]

    assert within(30, found)
    return found()


def test_a_request_is_one_line(server: ServerProcess, token: str) -> None:
    headers = {"Authorization": f"Bearer {token}", "X-Request-Id": "my-own"}
    response = httpx.get(f"{server.url}/v1/pets?limit=0", headers=headers)
    assert response.headers["X-Request-Id"] == "my-own"
    (line,) = lines_of(server, "my-own")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", str(line.pop("time")))
    milliseconds, key = line.pop("milliseconds"), line.pop("key")
    assert isinstance(milliseconds, float)
    assert 0 < milliseconds < 10_000
    assert isinstance(key, int)
    assert line == {
        "request": "my-own",
        "client": "127.0.0.1",
        "person": None,
        "method": "GET",
        "route": "/v1/pets",
        "operation": "listPets",
        "status": 400,
        "code": "invalid_parameter",
        "limit": None,
        "bytes": len(response.content),
        "level": "info",
        "event": "request",
    }


def test_tokens_bodies_and_queries_are_not_logged(server: ServerProcess) -> None:
    token = server.issue()
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=server.url) as client:
        new = {"name": "body-of-the-request", "categoryId": 1}
        client.post("/v1/pets", headers=headers, json=new)
        client.post("/v1/pets", headers=headers, content=b"body-of-the-request")
        client.get(f"/v1/pets?api_key={token}&status=query-of-the-request", headers=headers)
        client.get("/v1/pets", headers={"Authorization": f"Basic {token}"})
        client.get(f"/v1/{token}", headers=headers | {"X-Request-Id": "last-with-secrets"})
    assert lines_of(server, "last-with-secrets")
    log = server.log_path.read_text()
    for secret in (token, token[8:], "body-of-the-request", "query-of-the-request"):
        assert secret not in log


def test_a_terminal_gets_human_readable_lines(tmp_path: Path) -> None:
    token = Command(tmp_path / "petstore.db").create_key()
    port = free_port()
    with Terminal("serve", "--port", str(port), cwd=tmp_path) as terminal:
        terminal.wait_for("Docs are at")
        url = f"http://127.0.0.1:{port}"
        assert within(30, lambda: is_ready(url))
        headers = {"Authorization": f"Bearer {token}", "X-Request-Id": "by-a-person"}
        httpx.get(f"{url}/v1/pets", headers=headers)
        terminal.wait_for("by-a-person")
        terminal.process.terminate()
        assert terminal.wait() == 0
    line = next(line for line in terminal.text.splitlines() if "by-a-person" in line)
    assert re.fullmatch(
        r"\d\d:\d\d:\d\d 200 GET    listPets +key=1 127.0.0.1 \d+\.\d\d ms \d+ B by-a-person", line
    )


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
    buffered = {"PYTHONUNBUFFERED": ""}  # as it is unless the environment sets it
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


# ``/metrics`` on a port of its own

LISTED = 'petstore_requests_total{method="GET",operation="listPets",status="200"}'


def test_metrics_of_all_workers_even_of_a_killed_one_are_only_on_their_own_port(
    start: StartServer, tmp_path: Path
) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    port = free_port()

    def samples() -> Samples:
        return read_metrics(port)

    def list_pets() -> None:
        """Send ``listPets`` 20 times, each time on a connection of its own."""
        with httpx.Client(headers=headers | {"Connection": "close"}) as client:
            for _ in range(20):
                assert client.get(f"{server.url}/v1/pets").status_code == 200

    with redis_server() as redis:
        options = ("--workers", "2", "--redis", redis.url, "--metrics-port", str(port))
        server = start(*options, env={"TMPDIR": str(folder)})
        headers = {"Authorization": f"Bearer {server.issue()}"}
        list_pets()
        assert within(30, lambda: samples()[LISTED] == 20)
        assert within(30, lambda: samples()["petstore_workers"] == 2)
        assert samples()["petstore_limiter_fallback_workers"] == 0
        with httpx.Client() as client:
            assert client.get(f"{server.url}/metrics").status_code == 404
            assert within(30, lambda: samples()["petstore_connections"] == 1)
        assert within(30, lambda: samples()["petstore_connections"] == 0)
        assert samples()["petstore_connections_max"] > 0
        os.kill(server.workers()[0], signal.SIGKILL)
        assert samples()[LISTED] == 20
        assert within(30, lambda: samples()["petstore_worker_crashes_total"] == 1)
        assert within(30, lambda: samples()["petstore_workers"] == 2)
        assert samples()["petstore_workers_configured"] == 2
        list_pets()
        assert within(30, lambda: samples()[LISTED] == 40)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.stdout is not None
        assert f"Metrics at      http://127.0.0.1:{port}/metrics\n" in server.process.stdout.read()
        assert server.stop() == 0
    assert list(folder.iterdir()) == []
