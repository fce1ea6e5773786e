"""Signatures: the public library of Standard Webhooks verifies them."""

import re
import time

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from petstore.webhooks.secrets import secret_text
from petstore.webhooks.signatures import signed_headers

SECRET, OTHER = bytes(range(32)), bytes(range(1, 33))
BODY = '{"name":"Bello ☃"}'.encode()


def test_the_standard_webhooks_library_verifies_a_signature_with_each_secret() -> None:
    headers = signed_headers("evt_1", int(time.time()), BODY, [SECRET, OTHER])
    assert re.fullmatch(r"v1,[\w+/]{43}= v1,[\w+/]{43}=", headers["webhook-signature"])
    for secret in (SECRET, OTHER):
        assert Webhook(secret_text(secret)).verify(BODY, headers) == {"name": "Bello ☃"}


def test_a_signature_covers_the_id_the_time_and_the_body() -> None:
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
