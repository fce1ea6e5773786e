"""The log in a file that logrotate copies and truncates, as ``docs/logs.md`` has it."""

import json
import os
from pathlib import Path

import httpx

from support.process import StartServer
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
