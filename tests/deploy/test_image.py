"""``deploy/Dockerfile``: small, without root, and watched."""

import json
import subprocess
import sys
import tomllib
from fnmatch import fnmatch

import pytest

from petstore.settings import Settings
from support.deploy_files import (
    DEPLOY,
    ROOT,
    Instruction,
    image_settings,
    image_stages,
    settings_of,
    words_of,
)
from support.process import ServerProcess, free_port

BUILD, FINAL = image_stages()


def exec_form(name: str) -> list[str]:
    """Return the command that an instruction names in the form of JSON."""
    (text,) = [instruction.text for instruction in FINAL if instruction.name == name]
    command: list[str] = json.loads(text[text.index("[") :])
    return command


def test_it_does_not_run_as_root() -> None:
    assert words_of(FINAL, "USER") == ["10001"]
    assert FINAL.index(Instruction("USER", "10001")) > max(
        number for number, instruction in enumerate(FINAL) if instruction.name in {"RUN", "COPY"}
    )


def test_the_last_stage_has_what_was_made_and_builds_nothing() -> None:
    assert words_of(FINAL, "COPY") == ["--from=build", "/opt/petstore", "/opt/petstore"]
    assert set(words_of(FINAL, "RUN")) & {"pip", "python", "apt-get", "apt"} == set()
    assert words_of(BUILD, "FROM")[0] == words_of(FINAL, "FROM")[0]
    assert words_of(BUILD, "FROM")[0].endswith("-slim")


def test_nothing_is_installed_that_the_lock_file_has_no_hash_of() -> None:
    commands = " ".join(words_of(BUILD, "RUN")).split("pip ")
    fetching = [command for command in commands if command.startswith(("download", "install"))]
    for command in fetching:
        assert "--require-hashes" in command or "--no-index" in command
    assert any(command.startswith("download --require-hashes") for command in fetching)


def test_what_is_copied_is_there_and_not_ignored() -> None:
    ignore = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    kept = [line[1:] for line in ignore if line.startswith("!")]
    copied = [
        source
        for instruction in BUILD
        if instruction.name == "COPY"
        for source in instruction.words[:-1]
    ]
    assert sorted(copied) == sorted(kept)
    for source in copied:
        assert (ROOT / source).exists()
    assert any(fnmatch("src", line) for line in ignore)


def test_it_starts_the_service_with_settings_that_are_valid() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert exec_form("ENTRYPOINT")[0] in scripts
    assert exec_form("CMD") == ["serve"]
    settings = settings_of(image_settings())
    assert settings.host == "0.0.0.0"  # noqa: S104 - within its container
    assert words_of(FINAL, "EXPOSE") == [str(settings.port)]
    assert words_of(FINAL, "VOLUME") == [str(settings.sqlite_path.parent)]


@pytest.mark.parametrize("is_there", [True, False])
def test_it_is_healthy_while_the_service_is_ready(server: ServerProcess, *, is_there: bool) -> None:
    program, option, code = exec_form("HEALTHCHECK")
    assert (program, option) == ("python", "-c")
    port = server.port if is_there else free_port()
    asked = code.replace(f":{Settings.port}/", f":{port}/")
    assert asked != code
    ran = subprocess.run([sys.executable, "-c", asked], capture_output=True, check=False)
    assert (ran.returncode == 0) == is_there
