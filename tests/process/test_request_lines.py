"""One line for each request in the log, for a program or for a person. Never a secret."""

import re
from pathlib import Path

import httpx
import pytest

from support.command import Command
from support.process import ServerProcess, free_port, is_ready
from support.terminal import Terminal
from support.waiting import within


def lines_of(server: ServerProcess, request: str) -> list[dict[str, object]]:
    def found() -> list[dict[str, object]]:
        return [line for line in server.log_lines() if line.get("request") == request]

    assert within(30, found)
    return found()


@pytest.mark.parametrize(
    ("method", "path", "route", "operation", "status"),
    [
        ("GET", "/v1/pets", "/v1/pets", "listPets", 200),
        ("HEAD", "/v1/pets", "/v1/pets", "listPets", 200),
        ("GET", "/v1/pets?limit=0", "/v1/pets", "listPets", 400),
        ("POST", "/v1/pets", "/v1/pets", "createPet", 201),
        ("GET", "/v1/pets/999999999", "/v1/pets/{petId}", "getPet", 404),
        ("DELETE", "/v1/pets", None, None, 405),
    ],
)
def test_a_request_is_one_line(
    server: ServerProcess,
    token: str,
    request: pytest.FixtureRequest,
    method: str,
    path: str,
    route: str | None,
    operation: str | None,
    status: int,
) -> None:
    request_id = re.sub(r"\W", "-", request.node.name)[:64]
    headers = {"Authorization": f"Bearer {token}", "X-Request-Id": request_id}
    body = {"name": "Rex", "categoryId": 1} if method == "POST" else None
    response = httpx.request(method, f"{server.url}{path}", headers=headers, json=body)
    assert response.status_code == status
    assert response.headers["X-Request-Id"] == request_id
    (line,) = lines_of(server, request_id)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", str(line.pop("time")))
    milliseconds = line.pop("milliseconds")
    assert isinstance(milliseconds, float)
    assert 0 < milliseconds < 10_000
    assert isinstance(line.pop("key"), int)
    assert line.pop("person") is None
    assert line == {
        "request": request_id,
        "client": "127.0.0.1",
        "method": method,
        "route": route,
        "operation": operation,
        "status": status,
        "code": response.json()["code"] if status >= 400 else None,
        "limit": None,
        "bytes": len(response.content),
        "level": "info",
        "event": "request",
    }


def test_a_request_without_a_valid_key_is_logged_without_a_key(server: ServerProcess) -> None:
    headers = {"Authorization": "Bearer ps_live_wrong", "X-Request-Id": "no-valid-key"}
    httpx.get(f"{server.url}/v1/pets", headers=headers)
    (line,) = lines_of(server, "no-valid-key")
    assert (line["key"], line["status"]) == (None, 401)


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
