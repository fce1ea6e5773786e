"""Signatures: the public library of Standard Webhooks verifies them."""

import time
from base64 import b64encode

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from petstore.domain.webhook_secrets import secret_of_text, secret_text
from petstore.webhooks.signatures import signed_headers

SECRET, OTHER = bytes(range(32)), bytes(range(1, 33))
BODY = '{"name":"Bello ☃"}'.encode()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "whsec_",
        b64encode(SECRET).decode(),
        "whsec_%%%%",
        "whsec_é",
        secret_text(bytes(23)),
        secret_text(bytes(65)),
        secret_text(SECRET) + "\n",
    ],
)
def test_a_text_that_is_no_secret_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected whsec_ and the base64 of 24 to 64 bytes"):
        secret_of_text(text)


@pytest.mark.parametrize("secret", [bytes(24), SECRET, bytes(64)])
def test_a_secret_is_what_it_was_encoded_from(secret: bytes) -> None:
    assert secret_of_text(secret_text(secret)) == secret


def test_the_public_library_verifies_a_signature_by_each_secret() -> None:
    headers = signed_headers("evt_1", int(time.time()), BODY, [SECRET, OTHER])
    for secret in (SECRET, OTHER):
        assert Webhook(secret_text(secret)).verify(BODY, headers) == {"name": "Bello ☃"}


def test_a_signature_is_of_the_id_the_time_and_the_body() -> None:
    headers = signed_headers("evt_1", int(time.time()), BODY, [SECRET])
    later = str(int(headers["webhook-timestamp"]) + 1)
    for changed in ({"webhook-id": "evt_2"}, {"webhook-timestamp": later}):
        with pytest.raises(WebhookVerificationError):
            Webhook(secret_text(SECRET)).verify(BODY, headers | changed)
    with pytest.raises(WebhookVerificationError):
        Webhook(secret_text(SECRET)).verify(BODY + b" ", headers)


def test_another_secret_does_not_verify() -> None:
    headers = signed_headers("evt_1", int(time.time()), BODY, [OTHER])
    with pytest.raises(WebhookVerificationError):
        Webhook(secret_text(SECRET)).verify(BODY, headers)
