"""``deploy/Dockerfile``: small, without root, and watched."""

import json
import os
import re
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

from petstore.settings import sqlite_path
from support.deploy_files import (
    DEPLOY,
    ROOT,
    image_settings,
    image_stages,
    settings_of,
    words_of,
)
from support.odd_service import odd_service
from support.process import free_port

BUILD, FINAL = image_stages()


def exec_form(name: str) -> list[str]:
    (text,) = [instruction.text for instruction in FINAL if instruction.name == name]
    command: list[str] = json.loads(text[text.index("[") :])
    return command


def test_the_linter_reports_no_problems() -> None:
    linter = Path(sys.executable).with_name("hadolint")
    ran = subprocess.run(
        [linter, "--no-color", DEPLOY / "Dockerfile"], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (0, "")


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
    settings = settings_of(image_settings())
    assert settings.host == "0.0.0.0"  # noqa: S104 - within its container
    assert words_of(FINAL, "EXPOSE") == [str(settings.port)]
    assert words_of(FINAL, "VOLUME") == [str(sqlite_path(settings.database).parent)]


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
        settings = {"PETSTORE_PORT": port, "http_proxy": f"http://127.0.0.1:{free_port()}"}
        ran = subprocess.run(
            [sys.executable, *arguments],
            env={**os.environ, **settings},
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
