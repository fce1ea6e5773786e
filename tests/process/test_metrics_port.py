"""``/metrics`` on a port of its own, of one worker or of several."""

import os
import signal
from pathlib import Path

import httpx

from support.observed import Samples, read_metrics
from support.postgres import PostgresServer
from support.process import ServerProcess, StartServer, free_port, serving
from support.redis_server import redis_server
from support.waiting import within

LISTED = 'petstore_requests_total{method="GET",operation="listPets",status="200"}'


def list_pets(server: ServerProcess, token: str, times: int) -> None:
    """Send ``listPets`` so often, each time on a connection of its own."""
    headers = {"Authorization": f"Bearer {token}", "Connection": "close"}
    with httpx.Client(headers=headers) as client:
        for _ in range(times):
            assert client.get(f"{server.url}/v1/pets").status_code == 200


def test_metrics_are_served_only_on_their_own_port(start: StartServer, tmp_path: Path) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    port = free_port()
    server = start("--metrics-port", str(port), env={"TMPDIR": str(folder)})
    list_pets(server, server.issue(), 3)
    assert read_metrics(port)[LISTED] == 3
    with httpx.Client() as client:
        assert client.get(f"{server.url}/healthz").status_code == 200
        assert within(30, lambda: read_metrics(port)["petstore_connections"] == 1)
    assert within(30, lambda: read_metrics(port)["petstore_connections"] == 0)
    assert read_metrics(port)["petstore_connections_max"] > 0
    assert httpx.get(f"{server.url}/metrics").status_code == 404
    server.process.send_signal(signal.SIGTERM)
    assert server.process.stdout is not None
    assert f"Metrics at      http://127.0.0.1:{port}/metrics\n" in server.process.stdout.read()
    assert server.stop() == 0
    assert list(folder.iterdir()) == []


def test_samples_include_all_workers_even_after_one_was_killed(start: StartServer) -> None:
    port = free_port()
    with redis_server() as redis:
        server = start("--workers", "2", "--redis", redis.url, "--metrics-port", str(port))
        token = server.issue()

        def samples() -> Samples:
            return read_metrics(port)

        list_pets(server, token, 20)
        assert within(30, lambda: samples()[LISTED] == 20)
        assert within(30, lambda: samples()["petstore_workers"] == 2)
        assert samples()["petstore_limiter_fallback_workers"] == 0
        os.kill(server.workers()[0], signal.SIGKILL)
        assert samples()[LISTED] == 20
        assert within(30, lambda: samples()["petstore_worker_crashes_total"] == 1)
        assert within(30, lambda: samples()["petstore_workers"] == 2)
        assert samples()["petstore_workers_configured"] == 2
        list_pets(server, token, 20)
        assert within(30, lambda: samples()[LISTED] == 40)
        server.stop()


def test_a_service_on_postgresql_reports_its_connections_and_warns_of_its_password(
    postgres: PostgresServer, postgres_url: str, tmp_path: Path
) -> None:
    port = free_port()
    options = ("--database-connections", "7", "--metrics-port", str(port))
    with serving(tmp_path, *options, database=postgres.guarded_url(postgres_url)) as server:
        samples = read_metrics(port)
    assert samples["petstore_pool_connections_max"] == 7
    assert 0 <= samples["petstore_pool_connections_in_use"] <= 7
    first = server.log_lines()[0]
    assert first["level"] == "warning"
    assert first["event"] == (
        "--database: others on this machine can read a password on the command line; put the value"
        " into a file and name that in PETSTORE_DATABASE_FILE"
    )
