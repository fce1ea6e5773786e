"""The files of ``deploy/``, and what they make of the settings."""

import os
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import yaml  # type: ignore[import-untyped]

from petstore.cli.main import main
from petstore.cli.serve import serve
from petstore.settings import Settings

ROOT = Path(__file__).parent.parent.parent
DEPLOY = ROOT / "deploy"
POSTGRES_CONNECTIONS = 97
"""What a PostgreSQL server has for others than its administrator, unless told otherwise."""


class Instruction(NamedTuple):
    name: str
    text: str

    @property
    def words(self) -> list[str]:
        return shlex.split(self.text)


def image_stages() -> list[list[Instruction]]:
    text = (DEPLOY / "Dockerfile").read_text()
    lines = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", " ").splitlines()
    stages: list[list[Instruction]] = []
    for line in filter(str.strip, lines):
        name, _, text = line.partition(" ")
        if name == "FROM":
            stages.append([])
        stages[-1].append(Instruction(name, text))
    return stages


def words_of(stage: Iterable[Instruction], name: str) -> list[str]:
    return [word for instruction in stage if instruction.name == name for word in instruction.words]


def image_settings() -> dict[str, str]:
    pairs = [word.partition("=") for word in words_of(image_stages()[-1], "ENV")]
    return settings_among({name: value for name, _, value in pairs})


def read_yaml(name: str) -> Any:
    return yaml.safe_load((DEPLOY / name).read_text())


def settings_among(variables: Mapping[str, Any]) -> dict[str, str]:
    return {name: value for name, value in variables.items() if name.startswith("PETSTORE_")}


def settings_of(variables: Mapping[str, str]) -> Settings:
    """Return what ``petstore serve`` makes of environment variables; fail where it would."""
    known = {f"PETSTORE_{field.name.upper()}" for field in fields(Settings)}
    assert set(variables) <= known
    before = dict(os.environ)
    try:
        os.environ.update(variables)
        # As a part of the whole command: a command keeps the first help option that it gets.
        parent = main.make_context("petstore", ["serve"])
        options = serve.make_context("serve", [], parent).params
    finally:
        os.environ.clear()
        os.environ.update(before)
    del options["demo"], options["is_check"]
    settings = Settings(**options)
    settings.check()
    return settings


def seconds(text: str) -> int:
    assert text.endswith("s")
    return int(text[:-1])
