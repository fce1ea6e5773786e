"""``/metrics`` over HTTP."""

import asyncio
import shutil
from pathlib import Path

import httpx
import pytest

from support.manual_clock import ManualClock
from support.observed import observed_service, port_of, registry_of_test
from support.waiting import eventually

pytestmark = pytest.mark.anyio

HTTP = "GET /metrics HTTP/1.1\r\nHost: petstore\r\n"


async def test_paths_other_than_metrics_are_not_found(database: Path, clock: ManualClock) -> None:
    async with observed_service(database, clock) as service, httpx.AsyncClient() as other:
        address = f"http://127.0.0.1:{service.metrics_port}"
        assert (await other.get(f"{address}/")).status_code == 404
        assert (await other.post(f"{address}/metrics")).status_code == 404
        response = await other.get(f"{address}/metrics?name=x")
        assert response.headers["content-type"].startswith("text/plain; version=")


@pytest.mark.parametrize(
    ("sent", "response"),
    [
        ("", b""),
        ("GET /metr", b""),
        (HTTP, b""),
        (f"{HTTP}X: {'x' * 17000}\r\n\r\n", b"HTTP/1.1 431"),
        ("\0\r\n\r\n", b"HTTP/1.1 400"),
    ],
)
async def test_an_invalid_request_closes_its_connection_without_harm(
    database: Path, clock: ManualClock, sent: str, response: bytes
) -> None:
    async with observed_service(database, clock) as service:
        reader, writer = await asyncio.open_connection("127.0.0.1", service.metrics_port)
        writer.write(sent.encode())
        writer.write_eof()
        assert (await reader.read())[:12] == response
        writer.close()
        assert (await service.metrics())["petstore_workers"] == 1


async def test_unreadable_metrics_do_not_affect_the_service(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    folder = tmp_path / "metrics"
    folder.mkdir()
    with registry_of_test(folder=folder) as registry:
        async with registry.running():
            shutil.rmtree(folder)
            async with httpx.AsyncClient() as client:
                response = await client.get(f"http://127.0.0.1:{port_of(registry)}/metrics")
            assert response.status_code == 500
            await eventually(lambda: "metrics not published" in caplog.text)
    assert "cannot report the metrics" in caplog.text
