"""The headers of a delivery, verified by the public library of Standard Webhooks."""

from base64 import b64encode

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from petstore.clock import SECOND, system_clock
from petstore.webhooks.signatures import signed_headers

BODY = b'{"id":"evt_1","data":"\xc3\xa9"}'
OLD, NEW = b"o" * 32, b"n" * 32


def verifier(secret: bytes) -> Webhook:
    return Webhook(f"whsec_{b64encode(secret).decode()}")


@pytest.mark.parametrize("secret", [NEW, OLD])
def test_a_signature_is_good_by_each_of_the_secrets(secret: bytes) -> None:
    headers = signed_headers("evt_1", system_clock(), BODY, [NEW, OLD])
    assert verifier(secret).verify(BODY, headers) == {"id": "evt_1", "data": "é"}


@pytest.mark.parametrize(
    ("secret", "body"), [(OLD, BODY), (NEW, BODY + b" ")], ids=["another secret", "another body"]
)
def test_a_signature_is_of_one_secret_and_one_body(secret: bytes, body: bytes) -> None:
    headers = signed_headers("evt_1", system_clock(), BODY, [NEW])
    with pytest.raises(WebhookVerificationError):
        verifier(secret).verify(body, headers)


def test_the_headers_are_those_of_the_standard() -> None:
    headers = signed_headers("evt_1", 1_674_087_231 * SECOND + 999, b"{}", [NEW, OLD])
    assert headers == {
        "webhook-id": "evt_1",
        "webhook-timestamp": "1674087231",
        "webhook-signature": headers["webhook-signature"],
    }
    first, second = headers["webhook-signature"].split(" ")
    assert first.startswith("v1,")
    assert second.startswith("v1,")
    assert first != second
