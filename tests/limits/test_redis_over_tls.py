"""The limiter on a server that speaks TLS."""

import shutil
import ssl
from pathlib import Path

import pytest

from petstore.limits.database import StoredRateLimits
from support.manual_clock import ManualClock
from support.programs import needs
from support.redis_limiters import api_key, redis_limiter, said
from support.redis_server import RedisServer
from support.silent_server import way_to
from support.tls import self_signed_certificate

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(shutil.which("openssl") is None, reason=needs("openssl")),
]


@pytest.mark.parametrize(("trusted", "words"), [(True, []), (False, ["Redis is unavailable;"])])
async def test_a_certificate_named_in_the_url_is_trusted(
    trusted: bool,  # noqa: FBT001 - a parameter of the test
    words: list[str],
    redis: RedisServer,
    states: StoredRateLimits,
    clock: ManualClock,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    certificate, key = self_signed_certificate(tmp_path)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate, key)
    async with way_to(redis.port, tls=tls) as way:
        url = way.url.replace("redis:", "rediss:")
        if trusted:
            url += f"?ssl_ca_certs={certificate}"
        async with redis_limiter(url, states, clock) as limiter:
            assert (await limiter.take(api_key(1, 10))).minute.remaining == 9
    assert said(caplog) == words
    assert redis.call("EXISTS", "petstore:key:{1}") == trusted
