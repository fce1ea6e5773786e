"""The Error body of interface.md, as every refusal must carry it."""

import httpx


def assert_error(response: httpx.Response, status: int, code: str) -> str:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    body = response.json()
    assert body == {"code": code, "message": body["message"], "status": status}
    assert body["message"]
    return str(body["message"])
