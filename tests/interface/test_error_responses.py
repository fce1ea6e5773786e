"""interface.md, "Error" and "Errors"."""

import httpx


def test_an_error_has_a_code_a_message_and_a_status(error: httpx.Response) -> None:
    assert set(error.json()) == {"code", "message", "status"}


def test_the_code_of_an_error_is_a_string_for_machines(error: httpx.Response) -> None:
    code = error.json()["code"]
    assert code.isascii()
    assert code.isidentifier()
    assert code.islower()


def test_the_message_of_an_error_is_a_string_for_people(error: httpx.Response) -> None:
    message = error.json()["message"]
    assert isinstance(message, str)
    assert " " in message


def test_the_status_of_an_error_equals_the_http_status(error: httpx.Response) -> None:
    status = error.json()["status"]
    assert type(status) is int
    assert status == error.status_code


def test_an_error_is_application_json(error: httpx.Response) -> None:
    assert error.headers["Content-Type"] == "application/json"
