"""``deploy/compose.yaml`` and ``deploy/haproxy``: they fit each other and the service."""

import re
import subprocess
import sys
from ipaddress import IPv4Address, IPv4Network, ip_network
from typing import Any

import pytest

from petstore.settings import Settings
from support.deploy_files import (
    DEPLOY,
    POSTGRES_CONNECTIONS,
    image_settings,
    read_yaml,
    seconds,
    settings_among,
    settings_of,
)

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
        [sys.executable, *check, DEPLOY / name], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout


@pytest.mark.parametrize("name", INSTANCES)
def test_the_settings_of_an_instance_are_valid(name: str) -> None:
    found = settings(name)
    assert (found.host, found.port) == ("0.0.0.0", Settings.port)  # noqa: S104 - in its container
    for address, kind in ((found.database, "postgres"), (found.redis, "valkey")):
        assert re.search(rf"[@/]{kind}:", address)
        assert SERVICES[kind]["image"]


@pytest.mark.parametrize("name", INSTANCES)
def test_the_stop_grace_period_exceeds_the_shutdown_timeout(name: str) -> None:
    found = settings(name)
    between_checks = float(re.findall(r"\binter ([0-9]+)s", BALANCER)[0])
    assert 2 * between_checks < found.drain_timeout
    assert found.drain_timeout < found.shutdown_timeout - 1
    assert found.shutdown_timeout < seconds(INSTANCES[name]["stop_grace_period"])


def test_with_a_certificate_an_instance_does_not_start_without_a_public_url() -> None:
    for name in INSTANCES:
        told = settings_among(TLS["services"][name]["environment"])
        assert told == {"PETSTORE_PUBLIC_URL": "${PUBLIC_URL:?write it to .env}"}


def test_only_forwarded_addresses_from_the_balancer_are_trusted() -> None:
    address = SERVICES["balancer"]["networks"]["default"]["ipv4_address"]
    for name in INSTANCES:
        assert settings(name).trusted_networks == (ip_network(address),)
    assert "    option forwardfor\n" in BALANCER


def test_no_other_container_can_get_the_address_of_the_balancer() -> None:
    address = IPv4Address(SERVICES["balancer"]["networks"]["default"]["ipv4_address"])
    (network,) = COMPOSE["networks"]["default"]["ipam"]["config"]
    subnet, given = IPv4Network(network["subnet"]), IPv4Network(network["ip_range"])
    assert given.subnet_of(subnet)
    assert address in subnet
    assert address not in given
    assert address != IPv4Address(network["gateway"])
    assert [name for name, service in SERVICES.items() if "networks" in service] == ["balancer"]


def test_the_database_accepts_the_connections_of_all_processes() -> None:
    each = [settings(name) for name in INSTANCES]
    needed = sum(found.workers * found.database_connections for found in each)
    assert needed <= POSTGRES_CONNECTIONS


def test_no_secret_is_committed_or_sent_to_the_build_of_the_image() -> None:
    sent = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    assert "*" in sent
    assert not any(line.startswith("!deploy") for line in sent)
    committed = (DEPLOY.parent / ".gitignore").read_text().splitlines()
    for described in (COMPOSE, TLS):
        for secret in described["secrets"].values():
            file = secret["file"].removeprefix("./")
            assert file in committed


def test_no_file_contains_a_password() -> None:
    text = (DEPLOY / "compose.yaml").read_text()
    for value in re.findall(r"^ +(?:PGPASSWORD|POSTGRES_PASSWORD): (.+)$", text, re.MULTILINE):
        assert value.startswith("${POSTGRES_PASSWORD:?")
    assert not re.search(r"://[^/\s]+:[^/\s]+@", text)
