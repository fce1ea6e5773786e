"""Bad requests: what they are made of, and what is expected of a response."""

import json
from pathlib import Path
from random import Random

import pytest

from petstore.interface.operations import OPERATIONS
from proof.bad_requests import bad_request
from proof.experiment import Trial
from proof.experiments.bad_requests import judge_response
from proof.wire import Response

FIELDS = b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nx-request-id: a\r\n\r\n"
ERROR = {"code": "invalid_body", "message": "name: required", "status": 400}


def test_requests_cover_every_operation_and_have_correct_content_lengths() -> None:
    random = Random(1)  # noqa: S311 - what is drawn is no secret
    made = {bad_request(random, "ps_live_x") for _ in range(2_000)}
    assert len(made) > 1_000
    for operation in OPERATIONS:
        beginning = f"{operation.method} /v1{operation.path.partition('{')[0]}".encode()
        assert any(one.startswith(beginning) for one in made), operation.id
    for one in made:
        head, _, body = one.partition(b"\r\n\r\n")
        length = head.partition(b"Content-Length: ")[2].partition(b"\r\n")[0]
        assert len(body) == int(length or 0)


@pytest.mark.parametrize(
    "response",
    [
        Response(500, FIELDS, json.dumps(ERROR | {"status": 500}).encode()),
        Response(503, FIELDS, json.dumps(ERROR | {"status": 503}).encode()),
        Response(400, FIELDS, b"<html>"),
        Response(400, FIELDS, json.dumps(ERROR | {"status": 404}).encode()),
        Response(400, FIELDS, json.dumps(ERROR | {"detail": ""}).encode()),
        Response(400, FIELDS.replace(b"/json", b"/text"), json.dumps(ERROR).encode()),
        Response(400, FIELDS.replace(b"x-request-id", b"x"), json.dumps(ERROR).encode()),
    ],
    ids=["500", "503", "no JSON", "another status", "a member more", "no JSON type", "no id"],
)
def test_an_improper_refusal_breaks_the_promise(response: Response, tmp_path: Path) -> None:
    trial = Trial(0, Random(1), tmp_path)  # noqa: S311 - what is drawn is no secret
    for proper in (Response(400, FIELDS, json.dumps(ERROR).encode()), Response(200, b"", b"[]")):
        judge_response(trial, b"GET /", proper)
    assert trial.broken == []
    judge_response(trial, b"GET /", response)
    assert len(trial.broken) == 1
