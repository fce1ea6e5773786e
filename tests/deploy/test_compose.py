"""``deploy/compose.yaml`` and ``deploy/haproxy``: they fit each other and the service."""

import re
import subprocess
import sys
from ipaddress import IPv4Address, IPv4Network, ip_network
from pathlib import Path
from typing import Any

import httpx
import pytest

from petstore.settings import Settings
from support.deploy_files import (
    DEPLOY,
    POSTGRES_CONNECTIONS,
    image_settings,
    image_stages,
    read_yaml,
    seconds,
    settings_among,
    settings_of,
    words_of,
)
from support.process import ServerProcess

COMPOSE = read_yaml("compose.yaml")
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
INSTANCES = {name: SERVICES[name] for name in ("petstore-1", "petstore-2")}
BALANCER = (DEPLOY / "haproxy" / "haproxy.cfg").read_text()
TLS: dict[str, Any] = read_yaml("compose.tls.yaml")


def settings(name: str) -> Settings:
    return settings_of(image_settings() | settings_among(INSTANCES[name]["environment"]))


@pytest.mark.parametrize("name", ["compose.yaml", "compose.tls.yaml"])
def test_the_file_matches_the_compose_schema(name: str) -> None:
    check = ("-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec")
    ran = subprocess.run(
        [sys.executable, *check, DEPLOY / name],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout


@pytest.mark.parametrize("name", INSTANCES)
def test_an_instance_has_valid_settings_and_can_write_only_temporary_files(name: str) -> None:
    found, instance = settings(name), INSTANCES[name]
    assert (found.host, found.port) == ("0.0.0.0", Settings.port)  # noqa: S104 - in its container
    for address, kind in ((found.database, "postgres"), (found.redis, "valkey")):
        assert re.search(rf"[@/]{kind}:", address)
        assert SERVICES[kind]["image"]
    assert instance["read_only"]
    assert instance["volumes"] == ["/tmp"]  # noqa: S108 - of the container; on a disk
    assert "tmpfs" not in instance
    assert instance["cap_drop"] == ["ALL"]
    assert "user" not in instance
    # Each has the same secret of webhooks.
    (secret,) = COMPOSE["secrets"]
    assert COMPOSE["secrets"][secret] == {"file": "./webhooks.secret"}
    assert instance["secrets"] == [secret]
    assert found.secret_path == Path(f"/run/secrets/{secret}")


def test_the_stop_grace_period_exceeds_the_shutdown_timeout() -> None:
    between_checks = float(re.findall(r"\binter ([0-9]+)s", BALANCER)[0])
    for name in INSTANCES:
        found = settings(name)
        assert 2 * between_checks < found.drain_timeout < found.shutdown_timeout - 1
        assert found.shutdown_timeout < seconds(INSTANCES[name]["stop_grace_period"])


def test_the_database_accepts_the_connections_of_all_processes() -> None:
    each = [settings(name) for name in INSTANCES]
    assert sum(one.workers * one.database_connections for one in each) <= POSTGRES_CONNECTIONS


def test_the_balancer_uses_every_ready_instance(server: ServerProcess) -> None:
    targets = re.findall(r"^    server (\S+) (\S+):([0-9]+)$", BALANCER, re.MULTILINE)
    assert targets == [(name, name, str(settings(name).port)) for name in INSTANCES]
    (path,) = re.findall(r"^    http-check send meth GET uri (\S+) ", BALANCER, re.MULTILINE)
    assert path == "/readyz"
    assert httpx.get(f"{server.url}{path}").status_code == 200


def test_the_balancer_listens_on_the_published_ports() -> None:
    (published,) = SERVICES["balancer"]["ports"]
    assert re.findall(r"^    bind :([0-9]+)$", BALANCER, re.MULTILINE) == [published.split(":")[-1]]
    (mounted,) = SERVICES["balancer"]["volumes"]
    assert (DEPLOY / mounted.split(":")[0] / "haproxy.cfg").exists()
    with_tls = TLS["services"]["balancer"]
    (published,) = with_tls["ports"]
    assert f"    bind :{published.split(':')[-1]} ssl crt " in BALANCER
    (secret,) = with_tls["secrets"]
    (variable,) = with_tls["environment"]
    assert with_tls["environment"][variable] == f"/run/secrets/{secret}"
    assert f'.if defined({variable})\n    bind :8443 ssl crt "${{{variable}}}" ' in BALANCER
    assert TLS["services"].keys() == {"balancer", *INSTANCES}
    assert secret in TLS["secrets"]
    for name in INSTANCES:  # none starts without a public URL
        told = settings_among(TLS["services"][name]["environment"])
        assert told == {"PETSTORE_PUBLIC_URL": "${PUBLIC_URL:?write it to .env}"}


def test_only_the_balancer_is_trusted_and_no_other_container_can_get_its_address() -> None:
    address = IPv4Address(SERVICES["balancer"]["networks"]["default"]["ipv4_address"])
    for name in INSTANCES:
        assert settings(name).trusted_networks == (ip_network(address),)
    assert "    option forwardfor\n" in BALANCER
    (network,) = COMPOSE["networks"]["default"]["ipam"]["config"]
    subnet, given = IPv4Network(network["subnet"]), IPv4Network(network["ip_range"])
    assert given.subnet_of(subnet)
    assert address in subnet
    assert address not in given
    assert address != IPv4Address(network["gateway"])
    assert [name for name, service in SERVICES.items() if "networks" in service] == ["balancer"]


def test_every_dependency_has_a_health_check_and_every_log_is_rotated() -> None:
    image_tells = bool(words_of(image_stages()[-1], "HEALTHCHECK"))
    for service in SERVICES.values():
        for other, wait in service.get("depends_on", {}).items():
            assert wait == {"condition": "service_healthy"}
            assert "healthcheck" in SERVICES[other] or (other in INSTANCES and image_tells)
        logging = service["logging"]
        assert (logging["driver"], logging["options"].keys()) == ("local", {"max-size", "max-file"})
    # While the database is created, the server listens only on the socket of its own container.
    assert "--host=127.0.0.1" in SERVICES["postgres"]["healthcheck"]["test"]


def test_no_secret_is_committed_or_sent_to_the_build_of_the_image() -> None:
    sent = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    assert "*" in sent
    assert not any(line.startswith("!deploy") for line in sent)
    committed = (DEPLOY.parent / ".gitignore").read_text().splitlines()
    for described in (COMPOSE, TLS):
        for secret in described["secrets"].values():
            assert secret["file"].removeprefix("./") in committed
    text = (DEPLOY / "compose.yaml").read_text()
    for value in re.findall(r"^ +(?:PGPASSWORD|POSTGRES_PASSWORD): (.+)$", text, re.MULTILINE):
        assert value.startswith("${POSTGRES_PASSWORD:?")
    assert not re.search(r"://[^/\s]+:[^/\s]+@", text)


def test_the_commands_above_the_file_are_those_of_the_page() -> None:
    commands = re.findall(r"^#   (.+)$", (DEPLOY / "compose.yaml").read_text(), re.MULTILINE)
    page = (DEPLOY.parent / "docs/deploying.md").read_text()
    assert f"```sh\ncd deploy\n{chr(10).join(commands)}\n" in page
