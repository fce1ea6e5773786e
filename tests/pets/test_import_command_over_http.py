"""``petstore pets import`` with a key alone: each animal once, whatever happens on the way."""

import os
import signal
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from support.odd_service import SILENCE, OddService, error, odd_service, response
from support.process import ServerProcess
from support.servers import StartServer
from support.shop import Shop
from support.terminal import Shown, shown_on_terminal
from support.waiting import within

HEADER = "name,categoryId,status\n"
CREATED = response(201, {"id": 1, "name": "Rex", "categoryId": 1})
WAY_ON = (
    "all before line {line} of {file} is done. Run the same command with --from-line {line} to go"
    " on; within a day, nothing is added twice"
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A CSV file with three good rows, two of them equal, and one bad one."""
    file = tmp_path / "animals.csv"
    file.write_text(HEADER + "Rex,1,sold\n,2,\nBella,3,\nBella,3,\n")
    return file


@pytest.fixture
def other(start: StartServer) -> Shop:
    """The commands, with a service of their own."""
    server = start("--strict-categories")
    return Shop(server.url, server.issue())


def names(shop: Shop) -> list[str]:
    return [pet["name"] for pet in shop.ask("pets", "list", "--all")]


# Over HTTP or into a database


def test_without_a_key_or_a_database_nothing_is_imported(file: Path) -> None:
    words = Shop("http://127.0.0.1:1", "").fail("pets", "import", file, status=5)
    assert words == "expected an API key in the environment variable PETSTORE_KEY, or --database"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--database", "sqlite:///x.db", "--url", "http://a"), "--database and --url cannot be"),
        (("--database", "sqlite:///x.db", "--from-line", 3), "--from-line is for imports over"),
        (("--again",), "--again is for imports with --database"),
        (("--strict-categories",), "--strict-categories is for imports with --database"),
        (("--from-line", 0), "Invalid value for '--from-line'"),
    ],
)
def test_an_option_of_the_other_import_mode_is_refused(
    file: Path, options: tuple[object, ...], words: str
) -> None:
    shop = Shop("http://127.0.0.1:1", "a-key")
    assert shop.fail("pets", "import", file, *options, status=2).startswith(words)


def test_an_import_into_a_named_database_does_not_call_the_service(
    file: Path, tmp_path: Path
) -> None:
    shop = Shop("http://127.0.0.1:1", "a-key")
    result = shop("pets", "import", file, PETSTORE_DATABASE=f"sqlite:///{tmp_path / 'shop.db'}")
    assert result.stdout == "3 animals added, 1 row refused.\n"


def test_the_url_option_of_the_service_overrides_a_database_variable(
    file: Path, tmp_path: Path
) -> None:
    database = tmp_path / "shop.db"
    with odd_service(CREATED, CREATED, CREATED) as service:
        shop = Shop("http://127.0.0.1:1", "a-key")
        variables = {
            "PETSTORE_DATABASE": f"sqlite:///{database}",
            "PETSTORE_STRICT_CATEGORIES": "1",
        }
        result = shop("pets", "import", file, "--url", service.url, **variables)
    assert result.stdout == "3 animals added, 1 row refused.\n"
    assert not database.exists()


# What is refused


def test_an_invalid_row_is_reported_and_valid_rows_are_added(other: Shop, file: Path) -> None:
    for name in ("Dogs", "Birds"):
        other.succeed("categories", "add", name)
    refused = file.parent / "refused.csv"
    file.write_text(HEADER + "Rex,1,sold\n,2,\nTom,9,\nBella,2,\n")
    result = other("pets", "import", file, "--refused", refused)
    assert result.exit_code == 1
    assert result.stdout == "2 animals added, 2 rows refused.\n"
    by_file, by_service = result.stderr.splitlines()
    assert by_file.startswith("line 3: name: expected a string of 1 to 255 characters")
    assert by_service.startswith("line 4: categoryId: ")
    assert refused.read_text() == HEADER + ",2,\nTom,9,\n"
    assert names(other) == ["Rex", "Bella"]
    refused.write_text(HEADER + "Max,2,\nTom,2,\n")
    assert other.succeed("pets", "import", refused) == "2 animals added, 0 rows refused.\n"
    assert names(other) == ["Rex", "Bella", "Max", "Tom"]


def test_names_of_categories_are_those_of_the_service(other: Shop, file: Path) -> None:
    added = [other.ask("categories", "add", f"Kind {number} of {file}") for number in range(120)]
    last = added[-1]
    file.write_text(f"name;category\nRex;{last['name'].upper()}\nTom;Cats\nBella;{last['id']}\n")
    result = other("pets", "import", file, "--category-names")
    assert result.stdout == "2 animals added, 1 row refused.\n"
    assert result.stderr == "line 3: categoryId: no category has the name 'Cats'\n"
    found = other.ask("pets", "list", "--category", last["id"])
    assert [pet["name"] for pet in found] == ["Rex", "Bella"]


def test_the_categories_are_read_once_and_only_for_names(file: Path) -> None:
    pages = response(200, [])
    with odd_service(CREATED, pages, CREATED) as service:
        file.write_text("name;category\nRex;1\nTom;Cats\nMo;Dogs\nBella;3\n")
        result = Shop(service.url, "a-key")("pets", "import", file, "--category-names")
    assert result.stdout == "2 animals added, 2 rows refused.\n"
    assert [asked.method for asked in service.asked] == ["POST", "GET", "POST"]


# Once


def test_a_file_that_is_imported_again_adds_nothing(server: ServerProcess, file: Path) -> None:
    shop = Shop(server.url, server.issue())
    before = len(names(shop))
    assert shop("pets", "import", file).stdout == "3 animals added, 1 row refused.\n"
    assert shop("pets", "import", file.rename(file.with_name("other.csv"))).stdout == (
        "3 animals had been added before.\n0 animals added, 1 row refused.\n"
    )
    assert names(shop)[before:] == ["Rex", "Bella", "Bella"]


def test_a_row_is_identified_by_its_file_and_its_line(file: Path) -> None:
    with odd_service(CREATED, CREATED, CREATED) as service:
        Shop(service.url, "a-key")("pets", "import", file)
    digest = sha256(file.read_bytes()).hexdigest()
    keys = [asked.fields["idempotency-key"] for asked in service.asked]
    assert keys == [f"{digest}-{line}" for line in (2, 4, 5)]


def test_an_import_resumes_at_a_line_and_reports_invalid_rows_before_it(file: Path) -> None:
    with odd_service(CREATED) as service:
        result = Shop(service.url, "a-key")("pets", "import", file, "--from-line", 5)
    assert result.stdout == "1 animal added, 1 row refused.\n"
    assert result.stderr.startswith("line 3: ")
    (asked,) = service.asked
    assert asked.fields["idempotency-key"].endswith("-5")


def test_an_interrupted_import_says_how_to_resume(file: Path) -> None:
    with odd_service(CREATED, SILENCE) as service:
        environment = {**os.environ, "PETSTORE_URL": service.url, "PETSTORE_KEY": "a-key"}
        with subprocess.Popen(
            [sys.executable, "-m", "petstore", "pets", "import", str(file)],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert within(30, lambda: len(service.asked) == 2)
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate()
    assert process.returncode == 130
    assert errors.splitlines()[-1] == f"Error: interrupted: {WAY_ON.format(line=4, file=file)}"


def test_a_limit_that_lasts_too_long_ends_an_import_and_says_how_to_resume(file: Path) -> None:
    reached = error(429, message="the limit is reached", Retry_After=43200)
    with odd_service(CREATED, reached) as service:
        words = Shop(service.url, "a-key").fail("pets", "import", file, status=7)
    assert words.startswith("the limit is reached, until ")
    assert words.endswith(f"; {WAY_ON.format(line=4, file=file)}")


def shown_import(service: OddService, file: Path) -> Shown:
    """Import a file on a terminal."""
    environment = Shop(service.url, "a-key").environment
    return shown_on_terminal("pets", "import", str(file), COLUMNS="120", **environment)


def test_failures_and_refused_rows_cannot_control_the_terminal(file: Path) -> None:
    steering = "\x1b]0;owned\x07"
    with odd_service(error(400, message=steering), error(403, message=steering)) as service:
        shown = shown_import(service, file)
    assert shown.status == 5
    assert "\x07" not in shown.raw
    assert r"line 2: \x1b]0;owned\x07" in shown.text
    assert r"Error: \x1b]0;owned\x07; all before line 4 of" in shown.text


def test_the_progress_bar_shows_a_wait_for_a_limit(file: Path) -> None:
    with odd_service(CREATED, error(429, Retry_After=1), CREATED, CREATED) as service:
        shown = shown_import(service, file)
    assert shown.status == 1
    assert "Importing animals.csv  The limit is reached. Trying again in 1 s ━" in shown.text
    assert "Importing animals.csv ━" in shown.text
    assert shown.text.endswith("3 animals added, 1 row refused.\n")
