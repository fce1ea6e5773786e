"""Who may know whom: the layers of the program, read off its imports."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import petstore

ROOT = Path(petstore.__file__).parent
BASICS = ("petstore.clock", "petstore.errors", "petstore.domain")
OPENERS = ("petstore.storage.sqlite", "petstore.storage.migrations")


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(ROOT.rglob("*.py"))}
TREES = {name: ast.parse(path.read_text("utf-8")) for name, path in MODULES.items()}


def imports(module: str) -> Iterator[str]:
    """Yield what ``module`` imports, wherever in it: modules, not names out of them."""
    for node in ast.walk(TREES[module]):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports relatively"
            source = node.module or ""
            for alias in node.names:
                submodule = f"{source}.{alias.name}"
                yield submodule if submodule in MODULES else source


def is_in(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def is_in_any(module: str, packages: tuple[str, ...]) -> bool:
    return any(is_in(module, package) for package in packages)


def modules_of(*packages: str) -> list[str]:
    return [module for module in MODULES if is_in_any(module, packages)]


def assert_only_knows(module: str, packages: tuple[str, ...]) -> None:
    known = [name for name in imports(module) if is_in(name, "petstore")]
    assert [name for name in known if not is_in_any(name, packages)] == []


@pytest.mark.parametrize("module", modules_of("petstore.clock", "petstore.errors"))
def test_the_clock_and_the_errors_know_nobody(module: str) -> None:
    assert_only_knows(module, ())


@pytest.mark.parametrize("module", modules_of("petstore.domain"))
def test_the_domain_knows_only_the_clock_and_the_errors(module: str) -> None:
    assert_only_knows(module, BASICS)


@pytest.mark.parametrize("module", modules_of("petstore.storage"))
def test_storage_knows_of_the_limiters_only_their_contract(module: str) -> None:
    assert_only_knows(module, (*BASICS, "petstore.storage", "petstore.rate_limits.contract"))


@pytest.mark.parametrize("module", modules_of("petstore.rate_limits"))
def test_the_limiters_know_of_storage_only_its_contract(module: str) -> None:
    assert_only_knows(module, (*BASICS, "petstore.rate_limits", "petstore.storage.contract"))


@pytest.mark.parametrize("module", modules_of("petstore.operations"))
def test_operations_know_no_back_end(module: str) -> None:
    assert_only_knows(
        module,
        (
            *BASICS,
            "petstore.operations",
            "petstore.rate_limits.contract",
            *(name for name in modules_of("petstore.storage") if not is_in_any(name, OPENERS)),
        ),
    )


@pytest.mark.parametrize("module", modules_of("petstore.api"))
def test_the_api_knows_neither_back_ends_nor_the_command_line(module: str) -> None:
    outside = (*OPENERS, "petstore.cli", "petstore.app", "petstore.settings")
    assert [name for name in imports(module) if is_in_any(name, outside)] == []


@pytest.mark.parametrize("opener", OPENERS)
def test_only_the_wiring_and_the_command_line_open_a_back_end(opener: str) -> None:
    users = [
        module
        for module in MODULES
        if not is_in_any(module, OPENERS) and any(is_in(name, opener) for name in imports(module))
    ]
    assert [user for user in users if not is_in_any(user, ("petstore.app", "petstore.cli"))] == []


@pytest.mark.parametrize(
    ("library", "packages"),
    [("apsw", OPENERS), ("granian", ("petstore.cli",)), ("click", ("petstore.cli",))],
)
def test_a_library_stays_behind_its_adapter(library: str, packages: tuple[str, ...]) -> None:
    users = [module for module in MODULES if any(is_in(name, library) for name in imports(module))]
    assert users != []
    assert [user for user in users if not is_in_any(user, packages)] == []


@pytest.mark.parametrize("module", MODULES)
def test_every_module_says_what_it_is_for(module: str) -> None:
    assert ast.get_docstring(TREES[module])


@pytest.mark.parametrize("module", MODULES)
def test_nothing_is_printed_past_the_command_line_and_the_log(module: str) -> None:
    names = [node for node in ast.walk(TREES[module]) if isinstance(node, ast.Name)]
    assert "print" not in {name.id for name in names}
