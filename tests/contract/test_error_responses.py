"""interface.md, "Error" and "Errors"."""

import httpx


def test_an_error_is_json_with_a_code_a_message_and_the_status(error: httpx.Response) -> None:
    assert error.headers["Content-Type"] == "application/json"
    body = error.json()
    assert set(body) == {"code", "message", "status"}
    assert body["code"].isascii()
    assert body["code"].isidentifier()
    assert body["code"].islower()
    assert " " in body["message"]
    assert type(body["status"]) is int
    assert body["status"] == error.status_code
