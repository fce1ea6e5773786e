"""The README of the library is run as it stands, and its reference names what there is."""

import re
from pathlib import Path

import pytest

import petstore
import petstore_client
from petstore_client import Client, errors
from petstore_client._faces import Resource
from support.memory_folder import folder_in_memory
from support.process import serving

ROOT = Path(__file__).parents[3]
README = ROOT / "clients/python/README.md"
REFERENCE = ROOT / "docs/client-library.md"


def blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


def test_the_readme_runs_from_its_first_line_to_its_last(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with folder_in_memory() as folder, serving(folder) as server:
        monkeypatch.setenv("PETSTORE_URL", f"{server.url}/v1")
        monkeypatch.setenv("PETSTORE_KEY", server.issue())
        names: dict[str, object] = {}
        for block in blocks(README):
            exec(compile(block, README.name, "exec"), names)  # noqa: S102 - our own page
        client = names["client"]
        assert isinstance(client, Client)
        assert client.pets.get(1).name == "Bella II"
        assert len(list(client.pets.list())) == 21
        client.close()
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("placed 20")
    assert said[1:4] == ["sold", "1 Bella", "another customer was faster"]


def test_the_client_has_the_version_of_the_service() -> None:
    assert petstore_client.__version__ == petstore.__version__


def test_the_code_blocks_of_the_reference_are_valid_python() -> None:
    for block in blocks(REFERENCE):
        compile(block, REFERENCE.name, "exec")


def test_the_reference_has_every_method() -> None:
    rows = re.findall(r"^\| `client\.(\w+)` \| (.*) \|$", REFERENCE.read_text(), re.MULTILINE)
    listed = {resource: set(re.findall(r"`(\w+)`", methods)) for resource, methods in rows}
    client = Client("ps_live_key")
    held = {name: value for name, value in vars(client).items() if isinstance(value, Resource)}
    assert listed == {
        name: {each for each in dir(type(value)) if not each.startswith("_")}
        for name, value in held.items()
    }


def test_every_error_that_the_reference_names_exists() -> None:
    section = REFERENCE.read_text().partition("## Errors")[2].partition("## Retries")[0]
    named = re.findall(r"`([A-Z][a-z]\w+)`", section)
    assert len(named) > 15
    for name in named:
        assert hasattr(errors, name) or name in ("ValueError", "TypeError", "None")
