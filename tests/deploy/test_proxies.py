"""HAProxy of ``deploy/`` and nginx of the guide: the service holds its contract behind them."""

import json
import re
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from petstore.console.console import PAGES
from petstore_client import Client
from petstore_client.errors import ServiceUnavailable
from support.odd_service import SILENCE, odd_service
from support.postgres import PostgresServer, postgres_server
from support.process import ServerProcess, serving
from support.programs import needs
from support.proxies import (
    GUIDE,
    HAPROXY,
    NGINX,
    SHIPPED,
    HaProxy,
    haproxy,
    haproxy_version,
    nginx,
    statuses_beside_a_stranger,
)
from support.raw_socket import RawSocket
from support.tls import self_signed_certificate
from support.waiting import within

runs_haproxy = pytest.mark.skipif(HAPROXY is None, reason=needs("haproxy"))


# Responses of HAProxy itself


def test_every_error_of_haproxy_has_the_error_body() -> None:
    # As its manual lists them, and 421 and 422. With 408 the connection is closed.
    made = {400, 401, 403, 404, 405, 407, 410, 413, 414, 421, 422, 425, 429, 431}
    made |= {500, 501, 502, 503, 504}
    errors = {int(path.stem): path.read_text() for path in SHIPPED.glob("errors/*.http")}
    assert errors.keys() == made
    config = (SHIPPED / "haproxy.cfg").read_text()
    used = re.findall(r"^    errorfile ([0-9]+) (\S+)$", config, re.MULTILINE)
    assert dict(used) == {"408": "/dev/null"} | {str(s): f"errors/{s}.http" for s in made}
    page = (SHIPPED.parent.parent / "docs/errors.md").read_text()
    for status, text in errors.items():
        head, _, body = text.partition("\n\n")
        status_line, *fields = head.split("\n")
        assert status_line.startswith(f"HTTP/1.1 {status} ")
        assert_is_error(status, httpx.Headers(dict(line.split(": ", 1) for line in fields)), body)
        assert f'<b id="{json.loads(body)["code"]}">' in page


def assert_is_error(status: int, fields: httpx.Headers, text: str) -> None:
    error = json.loads(text)
    assert list(error) == ["code", "message", "status"]
    assert error["status"] == status
    assert re.fullmatch("[a-z_]+", error["code"])
    assert fields["Content-Type"] == "application/json"
    assert fields["Cache-Control"] == "no-store"
    assert fields["Link"] == f'</docs/errors#{error["code"]}>; rel="help"'
    assert int(fields["Content-Length"]) == len(text.encode())
    if status in {429, 503}:
        assert fields["Retry-After"] == "1"


@pytest.fixture(scope="module")
def database() -> Iterator[PostgresServer]:
    """A server that a test may stop; it starts it again."""
    with postgres_server(fsync="off") as server:
        yield server


@pytest.fixture(scope="module")
def service(
    tmp_path_factory: pytest.TempPathFactory, database: PostgresServer
) -> Iterator[ServerProcess]:
    options = ("--trusted-proxy", "127.0.0.1", "--database-timeout", "0.5")
    folder = tmp_path_factory.mktemp("service")
    with serving(folder, *options, database=database.new_store()) as service:
        yield service


@pytest.fixture(scope="module")
def token(service: ServerProcess) -> str:
    return service.issue()


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory, service: ServerProcess) -> Iterator[HaProxy]:
    with haproxy(tmp_path_factory.mktemp("haproxy"), service.port) as balancer:
        assert within(30, lambda: httpx.get(f"{balancer.url}/readyz").status_code == 200)
        yield balancer


@runs_haproxy
def test_without_postgresql_the_balancer_responds_like_the_service(
    database: PostgresServer, plain: HaProxy, token: str
) -> None:
    pets, key = f"{plain.url}/v1/pets", {"Authorization": f"Bearer {token}"}

    def is_of_the_balancer() -> bool:
        """Tell who responds: as long as an instance counts as ready, the service does."""
        response = httpx.get(pets, headers=key | {"X-Request-Id": "mine"})
        assert (response.status_code, response.json()["code"]) == (503, "service_unavailable")
        assert response.headers["Content-Type"] == "application/json"
        assert response.headers["Retry-After"] == "1"
        assert response.headers["X-Request-Id"] == "mine"
        return "no instance" in response.json()["message"]

    database.stop()
    try:
        assert within(30, is_of_the_balancer)
        response = httpx.get(pets, headers=key)
        assert_is_error(503, response.headers, response.text)
        logged = f" {response.headers['X-Request-Id']} GET /v1/pets 503 "
        assert within(30, lambda: logged in plain.log.read_text())
        slept: list[float] = []
        with (
            Client(token, f"{plain.url}/v1", wait=lambda seconds, _: slept.append(seconds)) as own,
            pytest.raises(
                ServiceUnavailable, match=r"^no instance of the service is available now"
            ),
        ):
            own.pets.get(1)
        assert len(slept) == 2
        assert min(slept) >= 1
    finally:
        database.start()
    assert within(30, lambda: httpx.get(pets, headers=key).status_code == 200)


@runs_haproxy
def test_no_client_can_disrupt_the_connections_that_haproxy_shares(
    plain: HaProxy, token: str
) -> None:
    expected = [200, 200, 201, 201] * 9
    assert statuses_beside_a_stranger(plain.url, token, instances=2) == expected


@pytest.mark.skipif(NGINX is None, reason=needs("nginx"))
def test_no_client_can_disrupt_the_connections_that_nginx_shares(
    tmp_path: Path, service: ServerProcess, token: str
) -> None:
    with nginx(tmp_path, service.port) as url:
        assert statuses_beside_a_stranger(url, token) == [200, 201] * 9


def test_nginx_passes_every_form_that_the_console_takes() -> None:
    (mebibytes,) = re.findall(r"client_max_body_size (\d+)m;", GUIDE.read_text("utf-8"))
    assert int(mebibytes) * 2**20 > max(page.max_bytes for page in PAGES)


@runs_haproxy
def test_requests_keep_their_ids_and_refusals_of_the_service_pass(
    service: ServerProcess, plain: HaProxy, token: str
) -> None:
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=f"{plain.url}/v1", headers=headers) as client:
        given = [
            client.get("/pets", headers={"X-Request-Id": sent}).headers["X-Request-Id"]
            for sent in ("my-own", "not valid")
        ]
        refused = [
            client.post("/pets", content=b" " * 1_000_000),
            client.get("/pets", params={"name": "x" * 9_000}),
            client.get("/pets", headers={f"X-{number}": "" for number in range(200)}),
        ]
    assert given[0] == "my-own"
    assert re.fullmatch("[0-9a-f-]{36}", given[1])
    assert within(30, lambda: set(given) <= {line.get("request") for line in service.log_lines()})
    assert [(each.status_code, each.json()["code"]) for each in refused] == [
        (413, "content_too_large"),
        (414, "uri_too_long"),
        (431, "header_fields_too_large"),
    ]


@runs_haproxy
@pytest.mark.parametrize(
    ("behaviour", "status"), [(b"garbage\r\n\r\n", 502), (SILENCE, 504)], ids=["garbage", "silence"]
)
def test_an_instance_that_fails_during_a_request_gives_an_ordinary_error(
    tmp_path: Path, behaviour: bytes, status: int
) -> None:
    with odd_service(behaviour) as broken:
        port = int(broken.url.rpartition(":")[2])
        # Without health checks: the broken one is taken to be ready.
        unchecked = {"default-server": "inter 1s", "timeout server": "200ms"}
        with haproxy(tmp_path, port, replaced=unchecked) as balancer:
            response = httpx.get(f"{balancer.url}/v1/pets", headers={"X-Request-Id": "mine"})
    assert response.status_code == status
    assert_is_error(status, response.headers, response.text)
    assert response.headers["X-Request-Id"] == "mine"


@runs_haproxy
def test_a_connection_with_incomplete_headers_is_closed_like_the_service_does(
    tmp_path: Path, service: ServerProcess
) -> None:
    soon = {"timeout http-request": "100ms"}
    with (
        haproxy(tmp_path, service.port, replaced=soon) as balancer,
        RawSocket(balancer.port) as caller,
    ):
        caller.send(b"GET /v1/pets HTTP/1.1\r\n")
        assert caller.rest() == b""


@pytest.mark.skipif(
    haproxy_version() < (3, 2, 4),
    reason=needs("HAProxy 3.2.4"),  # older ones respond to invalid HTTP with their own page
)
@pytest.mark.parametrize(
    ("message", "status"),
    [
        (b"GARBAGE\r\n\r\n", 400),
        (b"GET /v1/pets HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 422),
    ],
)
def test_invalid_http_gets_the_error_body(plain: HaProxy, message: bytes, status: int) -> None:
    with RawSocket(plain.port) as caller:
        caller.send(message)
        response = caller.read_response()
    assert response.status == status
    assert_is_error(status, httpx.Headers(response.fields), response.body.decode())


# TLS


@runs_haproxy
def test_with_a_certificate_clients_use_https_and_cannot_forge_their_addresses(
    tmp_path: Path, service: ServerProcess, token: str
) -> None:
    certificate, key = self_signed_certificate(tmp_path)
    both = tmp_path / "both.pem"
    both.write_text(certificate.read_text() + key.read_text())
    context = ssl.create_default_context(cafile=certificate)

    def pets(address: str, **fields: str) -> httpx.Response:
        """List pets without a key from an address."""
        transport = httpx.HTTPTransport(verify=context, local_address=address)
        with httpx.Client(transport=transport) as client:
            return client.get(f"https://127.0.0.1:{secure.port}/v1/pets", headers=fields)

    def remaining(address: str, **fields: str) -> int:
        return int(pets(address, **fields).headers["X-RateLimit-Remaining"])

    with haproxy(tmp_path / "haproxy", service.port, both) as secure:
        with pytest.raises(httpx.RemoteProtocolError):
            httpx.get(f"{secure.url}/v1/pets")  # plain HTTP gets no response
        assert within(30, lambda: pets("127.0.0.1").json()["code"] == "missing_api_key")
        sent = pets("127.0.0.1").headers
        assert sent["Strict-Transport-Security"] == "max-age=31536000"
        first = remaining("127.0.0.2")
        assert remaining("127.0.0.2", **{"X-Forwarded-For": "203.0.113.9"}) == first - 1
        assert remaining("127.0.0.3") == first
        if (curl := shutil.which("curl")) is None:  # httpx speaks no HTTP/2
            pytest.skip(needs("curl"))
        url = f"https://127.0.0.1:{secure.port}/v1/pets?categoryId=-1"
        arguments = ("--silent", "--show-error", "--cacert", certificate, "--http2")
        printed = ("--write-out", " %{http_version} %{http_code} %{num_connects}\n")
        told = subprocess.check_output(
            [curl, *arguments, "--header", f"Authorization: Bearer {token}", *printed, url, url],
            text=True,
            timeout=30,
        )
        assert told.splitlines() == ["[] 2 200 1", "[] 2 200 0"]
