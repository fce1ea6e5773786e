"""``deploy/Dockerfile``, ``compose.yaml`` and ``haproxy``: they fit each other and the service."""

import json
import os
import re
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from ipaddress import IPv4Address, IPv4Network, ip_network
from pathlib import Path
from typing import Any

import httpx
import pytest

from petstore.settings import Settings, sqlite_path
from support.deploy_files import (
    DEPLOY,
    POSTGRES_CONNECTIONS,
    ROOT,
    image_settings,
    image_stages,
    read_yaml,
    seconds,
    settings_among,
    settings_of,
    words_of,
)
from support.odd_service import odd_service
from support.process import ServerProcess, free_port

COMPOSE = read_yaml("compose.yaml")
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
INSTANCES = {name: SERVICES[name] for name in ("petstore-1", "petstore-2")}
BALANCER = (DEPLOY / "haproxy" / "haproxy.cfg").read_text()
TLS: dict[str, Any] = read_yaml("compose.tls.yaml")


def settings(name: str) -> Settings:
    return settings_of(image_settings() | settings_among(INSTANCES[name]["environment"]))


@pytest.mark.parametrize(
    "arguments",
    [
        "hadolint --no-color Dockerfile",
        "check-jsonschema --builtin-schema vendor.compose-spec compose.yaml compose.tls.yaml",
    ],
)
def test_a_linter_finds_nothing_wrong(arguments: str) -> None:
    name, *options = arguments.split()
    program = Path(sys.executable).with_name(name)
    ran = subprocess.run(
        [program, *options], cwd=DEPLOY, capture_output=True, text=True, check=False
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
    committed = (ROOT / ".gitignore").read_text().splitlines()
    for described in (COMPOSE, TLS):
        for secret in described["secrets"].values():
            assert secret["file"].removeprefix("./") in committed
    text = (DEPLOY / "compose.yaml").read_text()
    for value in re.findall(r"^ +(?:PGPASSWORD|POSTGRES_PASSWORD): (.+)$", text, re.MULTILINE):
        assert value.startswith("${POSTGRES_PASSWORD:?")
    assert not re.search(r"://[^/\s]+:[^/\s]+@", text)


def test_the_commands_above_the_file_are_those_of_the_page() -> None:
    commands = re.findall(r"^#   (.+)$", (DEPLOY / "compose.yaml").read_text(), re.MULTILINE)
    page = (ROOT / "docs/deploying.md").read_text()
    assert f"```sh\ncd deploy\n{chr(10).join(commands)}\n" in page


# The image: small, without root, and watched

BUILD, FINAL = image_stages()


def exec_form(name: str) -> list[str]:
    (text,) = [instruction.text for instruction in FINAL if instruction.name == name]
    command: list[str] = json.loads(text[text.index("[") :])
    return command


def test_the_last_stage_only_copies_build_results_and_does_not_run_as_root() -> None:
    assert words_of(FINAL, "COPY") == ["--from=build", "/opt/petstore", "/opt/petstore"]
    assert set(words_of(FINAL, "RUN")) & {"pip", "python", "apt-get", "apt"} == set()
    assert words_of(BUILD, "FROM")[0] == words_of(FINAL, "FROM")[0]
    assert words_of(BUILD, "FROM")[0].partition("@")[0].endswith("-slim")
    (user,) = (number for number, instruction in enumerate(FINAL) if instruction.name == "USER")
    assert FINAL[user].text == "10001"
    assert {"RUN", "COPY"}.isdisjoint(instruction.name for instruction in FINAL[user:])


def test_every_installed_package_has_a_hash_in_the_lock_file_and_tracing_is_one() -> None:
    words = words_of(BUILD, "RUN")
    commands = " ".join(words).split("pip ")
    fetching = [command for command in commands if command.startswith(("download", "install"))]
    for command in fetching:
        assert "--require-hashes" in command or "--no-index" in command
    assert any(command.startswith("download --require-hashes") for command in fetching)
    assert "petstore-service[tracing]" in words
    (lock,) = {word for word in words if word.endswith(".lock")}
    assert "\nopentelemetry-sdk==" in (ROOT / lock).read_text()


def test_copied_files_exist_and_are_not_ignored() -> None:
    ignore = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    copies = [instruction.words[:-1] for instruction in BUILD if instruction.name == "COPY"]
    copied = [source for sources in copies for source in sources]
    assert sorted(copied) == sorted(line[1:] for line in ignore if line.startswith("!"))
    assert [source for source in copied if not (ROOT / source).exists()] == []
    assert any(fnmatch("src", line) for line in ignore)


def test_the_image_starts_the_service_with_valid_settings() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert exec_form("ENTRYPOINT")[0] in scripts
    assert exec_form("CMD") == ["serve"]
    found = settings_of(image_settings())
    assert found.host == "0.0.0.0"  # noqa: S104 - within its container
    assert words_of(FINAL, "EXPOSE") == [str(found.port)]
    assert words_of(FINAL, "VOLUME") == [str(sqlite_path(found.database).parent)]


@pytest.mark.parametrize(
    ("responses", "is_healthy"),
    [((b"HTTP/1.1 200 OK",), True), ((b"HTTP/1.1 503 Service Unavailable",), False), ((), False)],
    ids=["ready", "not ready", "gone"],
)
def test_the_container_is_healthy_while_the_service_is_ready(
    responses: tuple[bytes, ...], *, is_healthy: bool
) -> None:
    program, *arguments = exec_form("HEALTHCHECK")
    assert program == "python"
    with odd_service(
        *(response + b"\r\nContent-Length: 0\r\n\r\n" for response in responses)
    ) as service:
        port = service.url.rpartition(":")[2]
        # A proxy of the machine is not for the container itself.
        variables = {"PETSTORE_PORT": port, "http_proxy": f"http://127.0.0.1:{free_port()}"}
        ran = subprocess.run(
            [sys.executable, *arguments],
            env={**os.environ, **variables},
            capture_output=True,
            check=False,
        )
    assert [asked.target for asked in service.asked] == ["/readyz"] * len(responses)
    assert (ran.returncode == 0) == is_healthy


def test_every_third_party_image_is_pinned_by_tag_and_digest() -> None:
    named = {words_of(stage, "FROM")[0] for stage in image_stages()}
    for path in DEPLOY.glob("**/*.yaml"):
        named |= {*re.findall(r"^ *(?:- )?image: *(\S+)$", path.read_text(), re.MULTILINE)}
    named -= {"petstore"}
    pinned = re.compile(r"[a-z/]+:[0-9][a-z0-9.-]*@sha256:[0-9a-f]{64}")
    assert [image for image in named if not pinned.fullmatch(image)] == []
    names = {image.partition(":")[0] for image in named}
    assert names == {"python", "haproxy", "postgres", "valkey/valkey"}
