"""The layers of the program: which package may import which."""

import ast
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import petstore

ROOT = Path(petstore.__file__).parent
OPENERS = (
    "petstore.databases.sqlite",
    "petstore.databases.postgres_connection",
    "petstore.databases.postgres_units",
    "petstore.databases.sqlite_connection",
    "petstore.databases.sqlite_commits",
    "petstore.databases.migrations",
    "petstore.databases.backups",
    "petstore.databases.store_copies",
)


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(ROOT.rglob("*.py"))}


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text("utf-8"))


@cache
def imports(module: str) -> set[str]:
    """Return what ``module`` imports, wherever in it: modules, not names out of them."""
    found: set[str] = set()
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports relatively"
            source = node.module or ""
            names = (f"{source}.{alias.name}" for alias in node.names)
            found.update(name if name in MODULES else source for name in names)
    return found


def is_in(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def is_in_any(module: str, packages: tuple[str, ...]) -> bool:
    return any(is_in(module, package) for package in packages)


def users_of(library: str) -> list[str]:
    return [module for module in MODULES if any(is_in(name, library) for name in imports(module))]


def modules_of(*packages: str) -> list[str]:
    return [module for module in MODULES if is_in_any(module, packages)]


RESOURCES = (
    *("pets", "orders", "categories", "keys", "events", "webhooks", "usage", "deprecations"),
    *("sales", "sessions", "people"),
)
LAYERS = {
    "model": ("model", "addresses", "examples", "schedule", "secrets", "signatures"),
    "store": (
        *("store", "changes", "counts", "exports", "feed", "files", "console_imports", "imports"),
        *("columns", "import_preparation", "import_undo"),
        *("reservations", "responses", "rows", "search"),
        *("alerts", "buyers", "cache", "notices", "refusals", "search"),
        *("accounts", "passwords", "status", "uses"),
        *(
            "deliverer",
            "deliveries",
            "leases",
            "progress",
            "queue",
            "replays",
            "resumption",
            "sender",
            "waits",
        ),
    ),
    "operations": ("operations",),
    "pages": (
        "pages",
        "activity_pages",
        "export_pages",
        "form",
        "import_pages",
        "replay_pages",
        "sale",
        *("account_pages", "invitation_pages"),
        *("import_undo_pages", "selection", "selection_pages"),
    ),
    "commands": ("commands", "file_commands", "transfers"),
}
"""The modules of a resource by their names: each imports its own layer and those before it."""


def layer(name: str, *resources: str) -> tuple[str, ...]:
    """Return the modules of a layer, of all resources or of those named."""
    found = (f"{resource}.{file}" for resource in resources or RESOURCES for file in LAYERS[name])
    return tuple(module for module in found if f"petstore.{module}" in MODULES)


BASICS = ("clock", "coalescing", "errors", "generations", "domain")
MODELS, STORES = layer("model"), layer("store")
BELOW_STORES = (*BASICS, *MODELS, "databases.contract", "limits.contract")
BELOW_OPERATIONS = (*BELOW_STORES, *STORES, "interface", "http.messages")
KNOWN = {
    "clock": (),
    "coalescing": (),
    "errors": (),
    "generations": (),
    "time_slices": (),
    "chores": BASICS,
    "logs": BASICS,
    "domain": BASICS,
    "settings": (*BASICS, *MODELS, "server_urls"),
    "server_urls": (),
    "redis_client": (*BASICS, "server_urls"),
    "limits": (
        *(*BASICS, *MODELS, "redis_client", "chores"),
        *("databases.contract", "databases.upserts"),
    ),
    "databases": (*BASICS, *MODELS, "chores", "server_urls", "time_slices"),
    "interface": (
        *(*BELOW_OPERATIONS, "chores", "logs", "limits.minutes"),
        *("databases.pages", "databases.schema", "databases.secret_files"),
    ),
    "console": (*BELOW_OPERATIONS, "limits.minutes", "time_slices"),
    "http": (),
    "agents": (*BELOW_OPERATIONS, "cli", "http", "settings", "server.listeners"),
    "observability": (
        *(*BELOW_OPERATIONS, "chores", "http", "logs", "settings"),
        *("databases", "limits"),
    ),
}
"""The table of docs/architecture.md: what a package may import besides itself."""
KNOWN_BY_LAYER = {
    "model": (*BASICS, *MODELS),
    "store": (
        *(*BELOW_STORES, *STORES, "chores", "logs", "time_slices"),
        *("databases.pages", "databases.planner", "databases.retention", "databases.schema"),
        "databases.upserts",
    ),
    "operations": (*BELOW_OPERATIONS, "databases.planner"),
    "pages": (
        *(*BELOW_OPERATIONS, "console", "limits.minutes", "time_slices"),
        *("orders.form", "orders.sale"),  # an animal is sold on its own page, which tells its sale
    ),
    "commands": (
        *(*BELOW_OPERATIONS, "console.numbers", "console.page", "cli"),
        *("databases.private_files", "settings"),
    ),
}
"""What each layer of a resource may import besides its own resource."""

TABLES = {"petstore.interface.operations": "operations", "petstore.console.console": "pages"}
"""The modules that list what a layer of each resource has."""

COMMAND_LINE = (
    *("petstore.agents", "petstore.cli"),
    *(f"petstore.{module}" for module in layer("commands")),
)

WIRING = ("app", "asgi", "backends", "cli", "server")
"""Which may import anything, but for the command line."""


def beyond(module: str, allowed: Iterable[str]) -> list[tuple[str, str]]:
    """Return the imports of ``module`` that are not ``allowed``."""
    packages = tuple(f"petstore.{name}" for name in allowed)
    own = sorted(name for name in imports(module) if name.startswith("petstore."))
    return [(module, name) for name in own if not is_in_any(name, packages)]


def test_a_module_imports_only_what_its_package_allows() -> None:
    found = []
    for package, others in KNOWN.items():
        for module in modules_of(f"petstore.{package}"):
            listed = layer(TABLES[module]) if module in TABLES else ()
            found += beyond(module, (package, *others, *listed))
    assert found == []


def test_a_module_of_a_resource_imports_only_what_its_layer_allows() -> None:
    found = []
    for resource in RESOURCES:
        own: tuple[str, ...] = ()
        for name, others in KNOWN_BY_LAYER.items():
            own += layer(name, resource)
            for module in layer(name, resource):
                found += beyond(f"petstore.{module}", (*own, *others))
    assert found == []


def test_the_name_of_a_module_of_a_resource_says_its_layer() -> None:
    known = {name for names in LAYERS.values() for name in names}
    packages = tuple(f"petstore.{resource}." for resource in RESOURCES)
    names = {module.split(".")[2] for module in MODULES if module.startswith(packages)}
    assert names == known


def test_only_entry_points_import_the_command_line() -> None:
    # petstore.asgi reads the settings of the environment as the command line does.
    entries = (*COMMAND_LINE, "petstore.__main__", "petstore.asgi")
    users = users_of("petstore.cli")
    assert [user for user in users if not is_in_any(user, entries)] == []


def test_every_package_has_an_import_rule() -> None:
    packages = {module.split(".")[1] for module in MODULES if "." in module}
    assert packages == {*KNOWN, *RESOURCES, *WIRING, "__main__", "samples"}


LIBRARIES = {
    "apsw": OPENERS,
    "argon2": ("petstore.people.passwords",),
    "asyncpg": OPENERS,
    "redis": ("petstore.redis_client",),
    "prometheus_client": ("petstore.observability",),
    "opentelemetry": ("petstore.observability",),
    "httptools": ("petstore.http", "petstore.webhooks.sender"),
    "uvloop": ("petstore.server",),
    "jinja2": ("petstore.console.templates",),
    "multipart": ("petstore.console.forms",),
    "mcp": ("petstore.agents",),
    **dict.fromkeys(("click", "rich", "petstore_client"), COMMAND_LINE),
}
"""Each with its adapters, which alone import it."""


def test_a_library_is_imported_only_by_its_adapter() -> None:
    for library, adapters in LIBRARIES.items():
        users = users_of(library)
        assert users != [], library
        assert [user for user in users if not is_in_any(user, adapters)] == [], library


def test_every_module_has_a_docstring() -> None:
    assert [module for module in MODULES if not ast.get_docstring(tree(module))] == []


def test_only_the_command_line_and_the_log_print() -> None:
    for module in MODULES:
        names = {node.id for node in ast.walk(tree(module)) if isinstance(node, ast.Name)}
        assert "print" not in names, module
