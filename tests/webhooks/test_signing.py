"""The secrets that sign deliveries; the public library of Standard Webhooks verifies them."""

import re
import time
from base64 import b64decode, b64encode

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from petstore.webhooks.signing import (
    master_of_text,
    secret_of_text,
    secret_text,
    signed_headers,
    text_of_master,
    webhook_secrets,
)

MASTER = bytes(range(32))
NOW = 1_000_000
OTHER = bytes(range(1, 33))
BODY = '{"name":"Bello ☃"}'.encode()


def test_a_secret_is_derived_by_hkdf_with_sha_256_from_its_master_webhook_and_version() -> None:
    (secret,) = webhook_secrets(MASTER, 7, 3, None, NOW)
    # By the implementation of the package cryptography.
    assert secret.hex() == "488b107a6617d9348cd530ef8ab1fef4ab3767606b0fd4752d60fd6a5726ce1d"
    secrets = {
        webhook_secrets(master, webhook_id, version, None, NOW)[0]
        for master in (MASTER, bytes(32))
        for webhook_id in (1, 11)
        for version in (1, 11, 111)
    }
    assert len(secrets) == 12


@pytest.mark.parametrize(
    "text",
    [
        "",
        "whsec_",
        b64encode(MASTER).decode(),
        "whsec_%%%%",
        "whsec_é",
        secret_text(bytes(23)),
        secret_text(bytes(65)),
        secret_text(MASTER) + "\n",
    ],
)
def test_an_invalid_secret_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^expected whsec_ and the base64 of 24 to 64 bytes$"):
        secret_of_text(text)


@pytest.mark.parametrize("secret", [bytes(24), MASTER, bytes(64)])
def test_a_secret_has_the_form_of_standard_webhooks(secret: bytes) -> None:
    text = secret_text(secret)
    assert text.startswith("whsec_")
    assert b64decode(text.removeprefix("whsec_"), validate=True) == secret_of_text(text) == secret


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
def test_a_master_secret_is_one_line(end: bytes) -> None:
    assert master_of_text(text_of_master(MASTER).removesuffix(b"\n") + end) == MASTER


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\n",
        b"x",
        MASTER,
        b64encode(bytes(31)),
        b64encode(bytes(33)),
        b64encode(MASTER) + b"\n\n",
        b" " + b64encode(MASTER),
        b64encode(MASTER)[:-1],
        b64encode(b"\xff" * 32, b"-_"),
        "\u00e4".encode() * 22,
    ],
)
def test_an_invalid_master_secret_is_refused_and_not_shown(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"^expected one line, 32 random bytes in base64$"):
        master_of_text(text)


# Signatures


def test_the_standard_webhooks_library_verifies_a_signature_with_each_secret() -> None:
    headers = signed_headers("evt_1", int(time.time()), BODY, [MASTER, OTHER])
    assert re.fullmatch(r"v1,[\w+/]{43}= v1,[\w+/]{43}=", headers["webhook-signature"])
    for secret in (MASTER, OTHER):
        assert Webhook(secret_text(secret)).verify(BODY, headers) == {"name": "Bello ☃"}


def test_a_signature_covers_the_id_the_time_and_the_body() -> None:
    headers = signed_headers("evt_1", int(time.time()), BODY, [MASTER])
    later = {"webhook-timestamp": str(int(headers["webhook-timestamp"]) + 1)}
    for secret, body, changed in (
        (MASTER, BODY, {"webhook-id": "evt_2"}),
        (MASTER, BODY, later),
        (MASTER, BODY + b" ", {}),
        (OTHER, BODY, {}),
    ):
        with pytest.raises(WebhookVerificationError):
            Webhook(secret_text(secret)).verify(body, headers | changed)
