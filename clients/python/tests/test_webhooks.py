"""Deliveries: who signed them, and when."""

import json
from base64 import b64encode
from datetime import UTC, datetime
from typing import Any

import pytest
from standardwebhooks import Webhook

from petstore.webhooks.signing import signed_headers
from petstore_client import PetstoreError, webhooks
from petstore_client.events import PetCreated
from petstore_client.models import Pet
from petstore_client.webhooks import InvalidDelivery, verify

NOW = 1_795_255_200
SECRET, OLD, OTHER = (f"whsec_{b64encode(32 * bytes([each])).decode()}" for each in (1, 2, 3))
ID = "evt_5f2c8e0b7a9d4c1f6e3b8a41"
EVENT = {
    "id": ID,
    "type": "pet.created",
    "timestamp": "2026-11-22T10:00:00.123Z",
    "resource": "pet/7",
    "sequence": 41,
    "data": {"id": 7, "name": "Bella", "categoryId": 1},
    "actor": {"type": "service"},
    "tomorrow": "unknown members pass",
}
BODY = json.dumps(EVENT).encode()


def sign(body: bytes = BODY, *secrets: str, at: int = NOW) -> dict[str, str]:
    moment = datetime.fromtimestamp(at, UTC)
    signatures = [
        Webhook(secret).sign(ID, moment, body.decode()) for secret in secrets or (SECRET,)
    ]
    return {
        "Webhook-Id": ID,
        "Webhook-Timestamp": str(at),
        "Webhook-Signature": " ".join(signatures),
    }


def now() -> float:
    return NOW


def test_a_delivery_is_a_typed_event() -> None:
    event = verify(BODY, sign(), SECRET, clock=now)
    assert (event.id, event.type, event.sequence) == (ID, "pet.created", 41)
    assert isinstance(event, PetCreated)
    assert event.data == Pet(id=7, name="Bella", category_id=1)
    assert event.timestamp == datetime(2026, 11, 22, 10, 0, 0, 123000, UTC)
    assert (event.previous, event.actor.type, event.request_id) == (None, "service", None)
    assert verify(BODY.decode(), sign(), [SECRET], clock=now) == event


def test_any_of_several_secrets_can_match_any_of_several_signatures() -> None:
    assert verify(BODY, sign(BODY, OLD), [SECRET, OLD], clock=now)
    assert verify(BODY, sign(BODY, OTHER, OLD), OLD, clock=now)
    headers = sign()
    headers["Webhook-Signature"] = f"v2,abc v1,??? nonsense {headers['Webhook-Signature']}"
    assert verify(BODY, headers, SECRET, clock=now)


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        (sign(), BODY + b" "),
        (sign() | {"Webhook-Id": "evt_other"}, BODY),
        (sign() | {"Webhook-Timestamp": str(NOW + 1)}, BODY),
        (sign(BODY, OTHER), BODY),
        (sign() | {"Webhook-Signature": ""}, BODY),
        (sign() | {"Webhook-Signature": "v1,"}, BODY),
        (sign() | {"Webhook-Id": "evt_\udcff"}, BODY),  # as a framework decodes it
        (sign(), "\udcff"),
    ],
)
def test_a_body_that_was_not_signed_with_the_secret_is_refused(
    headers: dict[str, str], body: bytes | str
) -> None:
    with pytest.raises(InvalidDelivery, match="webhook-signature: expected"):
        verify(body, headers, SECRET, clock=now)


@pytest.mark.parametrize("late", [-301, 301])
def test_a_delivery_with_an_old_or_future_timestamp_is_refused(late: int) -> None:
    with pytest.raises(InvalidDelivery, match="expected a moment of the last 300 seconds"):
        verify(BODY, sign(at=NOW + late), SECRET, clock=now)
    assert verify(BODY, sign(at=NOW + late), SECRET, 400, clock=now)


@pytest.mark.parametrize("name", ["Webhook-Id", "Webhook-Timestamp", "Webhook-Signature"])
def test_a_missing_header_is_named(name: str) -> None:
    headers = sign()
    del headers[name]
    with pytest.raises(InvalidDelivery, match=f"^{name.lower()}: expected this header, which"):
        verify(BODY, headers, SECRET, clock=now)


@pytest.mark.parametrize("time", ["", "soon", "-1", "\uff11", "1.5"])
def test_an_invalid_timestamp_is_named(time: str) -> None:
    with pytest.raises(InvalidDelivery, match="webhook-timestamp: expected seconds"):
        verify(BODY, sign() | {"Webhook-Timestamp": time}, SECRET, clock=now)


@pytest.mark.parametrize(
    "body", [b"{}", b"[", b'"\xff"', json.dumps(EVENT | {"data": {"id": 7}}).encode()]
)
def test_a_signed_body_that_is_not_an_event_is_refused(body: bytes) -> None:
    headers = signed_headers("evt_1", NOW, body, [32 * bytes([1])])
    with pytest.raises(PetstoreError, match="the body is not an event"):
        verify(body, headers, SECRET, clock=now)


@pytest.mark.parametrize("secrets", [[], "", "whsec_", "whsec_short!"])
def test_an_invalid_secret_is_an_error_that_does_not_show_it(secrets: str | list[str]) -> None:
    with pytest.raises(ValueError, match="secrets: expected ") as raised:
        verify(BODY, sign(), secrets, clock=now)
    assert "short" not in str(raised.value)


@pytest.mark.parametrize("body", [json.loads(BODY), [], None, 5])
def test_a_body_that_was_decoded_is_an_error_that_says_what_to_pass(body: Any) -> None:
    with pytest.raises(TypeError, match="body: expected the bytes as they arrived, before their"):
        verify(body, sign(), SECRET, clock=now)


@pytest.mark.parametrize("body", [BODY, BODY.decode(), bytearray(BODY)])
def test_a_delivery_of_your_own_is_signed_as_the_service_does(body: Any) -> None:
    headers = webhooks.sign(body, SECRET)
    assert Webhook(SECRET).verify(BODY, headers) == EVENT
    assert verify(body, headers, SECRET).id == ID
    of_service = signed_headers(ID, NOW, BODY, [32 * bytes([1])])
    ours = webhooks.sign(body, SECRET, id=ID, at=NOW + 0.7)
    assert ours == {name.lower(): value for name, value in of_service.items()}
