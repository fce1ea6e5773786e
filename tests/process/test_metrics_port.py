"""``/metrics`` on a port of its own, of one worker or of several."""

import json
import os
import re
import signal
import socket
from pathlib import Path

import httpx
import pytest

from petstore.observability.metrics import METRICS
from support.observed import Samples, read_metrics
from support.postgres import PostgresServer
from support.process import ServerProcess, free_port, petstore
from support.redis_server import redis_server
from support.servers import StartServer
from support.waiting import within

DASHBOARD = Path(__file__).parents[2] / "deploy" / "grafana-dashboard.json"
ADDED = 'petstore_requests_total{method="POST",operation="createPet",status="201"}'
LISTED = 'petstore_requests_total{method="GET",operation="listPets",status="200"}'


def list_pets(server: ServerProcess, token: str, times: int) -> None:
    """Send ``listPets`` so often, each time on a connection of its own."""
    headers = {"Authorization": f"Bearer {token}"}
    for _ in range(times):
        assert httpx.get(f"{server.url}/v1/pets", headers=headers).status_code == 200


def test_a_metrics_port_in_use_is_refused(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        serving = ("serve", "--port", str(free_port()), "--metrics-port", str(port))
        refused = petstore(*serving, cwd=tmp_path)
    assert refused.returncode == 1
    assert refused.stderr == (
        f"Error: cannot listen on 127.0.0.1 port {port}: Address already in use\n"
    )


def test_the_service_and_its_metrics_cannot_have_one_port(tmp_path: Path) -> None:
    refused = petstore("serve", "--port", "8000", "--metrics-port", "8000", cwd=tmp_path)
    assert refused.returncode == 2
    assert "--metrics-port: expected another port than --port" in refused.stderr


def test_metrics_are_served_on_their_port_alone(start: StartServer, tmp_path: Path) -> None:
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


def test_the_samples_are_of_all_workers_also_after_one_was_killed(start: StartServer) -> None:
    port = free_port()
    with redis_server() as redis:
        server = start("--workers", "2", "--redis", redis.url, "--metrics-port", str(port))
        token = server.issue()

        def samples() -> Samples:
            return read_metrics(port)

        list_pets(server, token, 40)
        assert within(30, lambda: samples()[LISTED] == 40)
        assert within(30, lambda: samples()["petstore_workers"] == 2)
        assert samples()["petstore_limiter_fallback_workers"] == 0
        os.kill(server.workers()[0], signal.SIGKILL)
        assert samples()[LISTED] == 40
        assert within(30, lambda: samples()["petstore_worker_crashes_total"] == 1)
        assert within(30, lambda: samples()["petstore_workers"] == 2)
        assert samples()["petstore_workers_configured"] == 2
        list_pets(server, token, 40)
        assert within(30, lambda: samples()[LISTED] == 80)
        server.stop()


@pytest.mark.parametrize("workers", [1, 2])
def test_reloads_lose_no_count_and_leave_no_files(
    start: StartServer, tmp_path: Path, workers: int
) -> None:
    folder, port = tmp_path / "temporary", free_port()
    folder.mkdir()
    with redis_server() as redis:
        options = ("--workers", str(workers), "--redis", redis.url, "--metrics-port", str(port))
        server = start(*options, env={"TMPDIR": str(folder)})
        token = server.issue()
        for reloads in (1, 2, 3):
            list_pets(server, token, 20)
            before = server.workers()
            server.process.send_signal(signal.SIGHUP)
            assert within(30, lambda old=before: not {*old} & {*server.workers()})  # type: ignore[misc]
            assert within(30, lambda: read_metrics(port)["petstore_workers"] == workers)
            assert read_metrics(port)[LISTED] == 20 * reloads
            assert read_metrics(port)["petstore_worker_crashes_total"] == 0
        (shared,) = folder.iterdir()
        files = [file for file in shared.iterdir() if not file.name.startswith("~")]
        assert len(files) == workers + 1  # in a reload there is one process more
        server.stop()


def test_connections_to_postgresql_are_reported(tmp_path: Path) -> None:
    postgres, port = PostgresServer(), free_port()
    try:
        url = postgres.new_database()
        server = ServerProcess(
            *(tmp_path, "--database", url, "--read-database", url),
            *("--database-connections", "7", "--metrics-port", str(port)),
        )
        try:
            server.wait_until_ready()
            samples = read_metrics(port)
        finally:
            server.stop()
    finally:
        postgres.remove()
    for database in ("primary", "replica"):
        assert samples[f'petstore_pool_connections_max{{database="{database}"}}'] == 7
        assert 0 <= samples[f'petstore_pool_connections_in_use{{database="{database}"}}'] <= 7


def test_the_dashboard_queries_only_metrics_that_exist(start: StartServer) -> None:
    port = free_port()
    start("--metrics-port", str(port))
    text = httpx.get(f"http://127.0.0.1:{port}/metrics").text
    exposed = set()
    for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE):
        endings = ("_bucket", "_count", "_sum") if kind == "histogram" else ("",)
        exposed |= {name + ending for ending in endings}
    dashboard = json.loads(DASHBOARD.read_text())
    panels = [panel for panel in dashboard["panels"] if panel["type"] != "row"]
    queries = [target["expr"] for panel in panels for target in panel["targets"]]
    queries += [
        variable["query"]["query"]
        for variable in dashboard["templating"]["list"]
        if variable["type"] == "query"
    ]
    queried = {name for query in queries for name in re.findall(r"(?:petstore|process)_\w+", query)}
    assert queried - exposed == set()
    labels = {name for query in queries for name in re.findall(r"(\w+)=~?\"", query)}
    for names in re.findall(r"(?:by|on|group_left) \(([\w, ]+)\)", " ".join(queries)):
        labels |= set(names.split(", "))
    assert labels <= {"job", "instance", "le"}.union(*(metric.labels for metric in METRICS))
    # And it leaves no metric out.
    assert {name for name in exposed if not re.search(r"_(bucket|count|sum)$", name)} <= queried
    for query in queries:
        assert query.count("(") == query.count(")")
        assert query.count("{") == query.count("}")


@pytest.mark.parametrize(
    "panel", json.loads(DASHBOARD.read_text())["panels"], ids=lambda panel: panel["title"]
)
def test_every_panel_has_its_place_on_the_dashboard(panel: dict[str, dict[str, int]]) -> None:
    position = panel["gridPos"]
    assert 0 <= position["x"] < position["x"] + position["w"] <= 24
