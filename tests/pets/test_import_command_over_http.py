"""``petstore pets import`` with a key alone: each animal once, whatever happens on the way."""

import json
import os
import signal
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from support.odd_service import HANG_UP, SILENCE, OddService, error, odd_service, response
from support.process import ServerProcess
from support.servers import StartServer
from support.shop import Shop
from support.terminal import Shown, shown_on_terminal
from support.waiting import within

HEADER = "name,categoryId,status\n"
CREATED = response(201, {"id": 1, "name": "Rex", "categoryId": 1})
ALL_CREATED = response(201, [{"id": 1, "name": "Rex", "categoryId": 1}])


def usage(left: int) -> bytes:
    window = {"limit": 1000, "remaining": left, "reset": 1795305600}
    lists: dict[str, object] = {"bannedUntil": None, "days": [], "deprecated": [], "refused": []}
    return response(200, {"plan": "free", "minute": window, "day": window, **lists})


USAGE = usage(1000)
NO_BATCH = error(405, "method_not_allowed")
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
    with odd_service(USAGE, ALL_CREATED) as service:
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
    assert by_file.startswith("line 3: name: expected 1 to 255 characters")
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
    pages = response(200, [{"id": 4, "name": "Cat"}])
    with odd_service(USAGE, pages, CREATED, CREATED) as service:
        file.write_text("name;category\nRex;1\nTom;Cats\nMo;Dogs\nBella;3\n")
        result = Shop(service.url, "a-key")("pets", "import", file, "--category-names")
    assert result.stdout == "2 animals added, 2 rows refused.\n"
    assert result.stderr.splitlines() == [
        "line 3: categoryId: no category has the name 'Cats'; did you mean 'Cat'?",
        "line 4: categoryId: no category has the name 'Dogs'",
    ]
    assert [asked.method for asked in service.asked] == ["GET", "GET", "POST", "POST"]


def test_a_batch_of_rows_with_names_of_categories_has_a_key_of_its_own(file: Path) -> None:
    pages = response(200, [{"id": 7, "name": "Cats"}])
    file.write_text("name;category\n" + "Rex;Cats\nTom;cats\n" * 51)
    with odd_service(USAGE, pages, ALL_CREATED, ALL_CREATED) as service:
        Shop(service.url, "a-key").succeed("pets", "import", file, "--category-names")
    assert sent(service)[1:] == [("/pets/batch", "2-named"), ("/pets/batch", "102-named")]


# Once


def test_a_file_that_is_imported_again_adds_nothing(server: ServerProcess, file: Path) -> None:
    shop = Shop(server.url, server.issue())
    before = len(names(shop))
    assert shop("pets", "import", file).stdout == "3 animals added, 1 row refused.\n"
    assert shop("pets", "import", file.rename(file.with_name("other.csv"))).stdout == (
        "3 animals had been added before.\n0 animals added, 1 row refused.\n"
    )
    assert names(shop)[before:] == ["Rex", "Bella", "Bella"]


def sent(service: OddService) -> list[tuple[str, str]]:
    """Return where the animals were sent, and the line in each idempotency key."""
    keys = [(asked.target, asked.fields.get("idempotency-key", "")) for asked in service.asked]
    return [(target.removeprefix("/v1"), key.partition("-")[2]) for target, key in keys[1:]]


def test_a_batch_is_identified_by_its_file_and_its_first_line(file: Path) -> None:
    with odd_service(USAGE, ALL_CREATED) as service:
        assert Shop(service.url, "a-key")("pets", "import", file).exit_code == 1
    asked = service.asked[1]
    assert (asked.method, asked.target) == ("POST", "/v1/pets/batch")
    digest = sha256(file.read_bytes()).hexdigest()
    assert asked.fields["idempotency-key"] == f"{digest}-2"
    assert json.loads(asked.body) == [
        {"name": "Rex", "categoryId": 1, "status": "sold"},
        {"name": "Bella", "categoryId": 3},
        {"name": "Bella", "categoryId": 3},
    ]


def test_a_batch_whose_response_is_lost_is_added_once(file: Path) -> None:
    replay = response(201, [], Idempotent_Replayed="true")
    with odd_service(USAGE, HANG_UP, replay) as service:
        result = Shop(service.url, "a-key")("pets", "import", file)
    assert result.stdout.startswith("3 animals had been added before.\n")
    assert sent(service) == [("/pets/batch", "2")] * 2


def test_a_service_without_batches_gets_one_animal_after_the_other(tmp_path: Path) -> None:
    file = tmp_path / "animals.csv"
    file.write_text(HEADER + "Rex,1,\n" * 102)
    with odd_service(USAGE, NO_BATCH, *[CREATED] * 102) as service:
        result = Shop(service.url, "a-key")("pets", "import", file)
    assert result.stdout == "102 animals added, 0 rows refused.\n"
    singles = [("/pets", str(line)) for line in range(2, 104)]
    assert sent(service) == [("/pets/batch", "2"), *singles]


@pytest.mark.parametrize("refusal", [error(413), error(400, "invalid_body")])
def test_a_batch_that_is_refused_is_sent_row_by_row(file: Path, refusal: bytes) -> None:
    replies = (CREATED, error(400, message="why"), CREATED)
    with odd_service(USAGE, refusal, *replies) as service:
        result = Shop(service.url, "a-key")("pets", "import", file)
    assert result.stdout == "2 animals added, 2 rows refused.\n"
    assert [line for line in result.stderr.splitlines() if line.startswith("line 4")] == [
        "line 4: why"
    ]
    assert sent(service) == [("/pets/batch", "2"), *(("/pets", line) for line in "245")]


def test_a_batch_that_the_day_has_no_room_for_is_sent_row_by_row(file: Path) -> None:
    with odd_service(usage(2), CREATED, CREATED, CREATED) as service:
        Shop(service.url, "a-key")("pets", "import", file)
    assert sent(service) == [("/pets", line) for line in "245"]


def test_what_the_day_has_left_is_known_from_each_response(tmp_path: Path) -> None:
    file = tmp_path / "animals.csv"
    file.write_text(HEADER + "Rex,1,\n" * 102)
    last = response(201, [], RateLimit='"minute";r=59;t=60, "day";r=1;t=43200')
    with odd_service(usage(101), last, CREATED, CREATED) as service:
        Shop(service.url, "a-key")("pets", "import", file)
    assert sent(service) == [("/pets/batch", "2"), ("/pets", "102"), ("/pets", "103")]


def test_any_other_failure_of_a_batch_ends_an_import(file: Path) -> None:
    with odd_service(USAGE, error(403)) as service:
        words = Shop(service.url, "a-key").fail("pets", "import", file, status=5)
    assert words == f"no; {WAY_ON.format(line=2, file=file)}"


def test_a_row_whose_key_another_request_has_used_ends_an_import(file: Path) -> None:
    used = error(422, "idempotency_key_reused")
    with odd_service(USAGE, error(413), CREATED, used) as service:
        words = Shop(service.url, "a-key").fail("pets", "import", file, status=2)
    assert words == f"no; {WAY_ON.format(line=4, file=file)}"


def test_an_import_resumes_at_a_line_and_reports_invalid_rows_before_it(file: Path) -> None:
    with odd_service(USAGE, CREATED) as service:
        result = Shop(service.url, "a-key")("pets", "import", file, "--from-line", 5)
    assert result.stdout == "1 animal added, 1 row refused.\n"
    assert result.stderr.startswith("line 3: ")
    # With the key of its batch, so that the whole batch cannot be added later.
    assert sent(service) == [("/pets", "2")]


def test_an_import_that_resumes_behind_the_last_line_sends_nothing(file: Path) -> None:
    with odd_service(USAGE) as service:
        result = Shop(service.url, "a-key")("pets", "import", file, "--from-line", 6)
    assert result.stdout == "0 animals added, 1 row refused.\n"


def refused_first(other: Shop, file: Path) -> None:
    """Import two animals, behind one that the service refuses; register its category then."""
    other.succeed("categories", "add", "Dogs")
    file.write_text(HEADER + "Tom,2,\nRex,1,\nBella,1,\n")
    assert other("pets", "import", file).stdout == "2 animals added, 1 row refused.\n"
    other.succeed("categories", "add", "Cats")


def test_a_row_that_was_refused_is_added_later_and_no_other_one_twice(
    other: Shop, file: Path
) -> None:
    refused_first(other, file)
    assert other("pets", "import", file, "--from-line", 4).stdout == (
        "1 animal had been added before.\n0 animals added, 0 rows refused.\n"
    )
    assert other("pets", "import", file).stdout == (
        "2 animals had been added before.\n1 animal added, 0 rows refused.\n"
    )
    assert other("pets", "import", file).stdout == (
        "3 animals had been added before.\n0 animals added, 0 rows refused.\n"
    )
    assert names(other) == ["Rex", "Bella", "Tom"]


@pytest.mark.parametrize("options", [(), ("--category-names",)])
def test_a_row_whose_category_has_no_name_yet_is_added_later(
    other: Shop, file: Path, options: tuple[str, ...]
) -> None:
    other.succeed("categories", "add", "Dogs")
    file.write_text("name,category\nTom,Cats\nRex,1\nBella,Dogs\nMo,1\n")
    other("pets", "import", file, *options)
    other.succeed("categories", "add", "Cats")
    other.succeed("pets", "import", file, "--category-names")
    assert sorted(names(other)) == ["Bella", "Mo", "Rex", "Tom"]
    assert other("pets", "import", file, "--category-names").stdout == (
        "4 animals had been added before.\n0 animals added, 0 rows refused.\n"
    )


def test_a_file_imported_again_with_other_columns_is_refused(other: Shop, file: Path) -> None:
    other.succeed("categories", "add", "Dogs")
    file.write_text("name,title,category\nTom,Thomas,1\nRex,T. Rex,1\n")
    other.succeed("pets", "import", file)
    words = other.fail("pets", "import", file, "--column", "name=title", status=2)
    assert words.startswith("Idempotency-Key: expected a new one")
    assert names(other) == ["Tom", "Rex"]


def test_the_rest_of_a_batch_that_was_added_is_not_added_again(other: Shop, file: Path) -> None:
    other.succeed("categories", "add", "Dogs")
    file.write_text(HEADER + "Tom,1,\nRex,1,\nBella,1,\n")
    other.succeed("pets", "import", file)
    assert other("pets", "import", file, "--from-line", 3).stdout == (
        "2 animals had been added before.\n0 animals added, 0 rows refused.\n"
    )
    assert names(other) == ["Tom", "Rex", "Bella"]


def test_the_rows_before_the_first_line_can_be_added_later(other: Shop, file: Path) -> None:
    other.succeed("categories", "add", "Dogs")
    file.write_text(HEADER + "Tom,1,\nRex,1,\nBella,1,\n")
    other.succeed("pets", "import", file, "--from-line", 3)
    assert names(other) == ["Rex", "Bella"]
    assert other("pets", "import", file).stdout == (
        "2 animals had been added before.\n1 animal added, 0 rows refused.\n"
    )
    assert names(other) == ["Rex", "Bella", "Tom"]


def test_an_import_costs_as_many_requests_as_it_has_animals(
    server: ServerProcess, tmp_path: Path
) -> None:
    shop = Shop(server.url, server.issue("free"))
    file = tmp_path / "animals.csv"
    file.write_text(HEADER + "".join(f"Pet {n},1,\n" for n in range(250)))
    assert shop.succeed("pets", "import", file) == "250 animals added, 0 rows refused.\n"
    used = shop.ask("usage")
    assert (used["minute"]["remaining"], used["day"]["remaining"]) == (57, 750)


def test_an_import_uses_up_the_day_and_goes_on_the_next_one(
    server: ServerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It waits for a day that is nearly over, so that this test would end at midnight.
    monkeypatch.setattr("petstore.cli.client._MAX_WAIT_SECONDS", 0)
    file = tmp_path / "animals.csv"
    file.write_text(HEADER + "".join(f"Day {n},1,\n" for n in range(110)))
    for _ in range(2):  # it may be midnight in between
        key = server.issue("enterprise", "--per-day", "105")
        result = Shop(server.url, key)("pets", "import", file)
        if result.exit_code:
            break
    assert result.exit_code == 7
    assert "Run the same command with --from-line 107 to go on" in result.stderr


def test_an_interrupted_import_says_how_to_resume(file: Path) -> None:
    with odd_service(USAGE, NO_BATCH, CREATED, SILENCE) as service:
        environment = {**os.environ, "PETSTORE_URL": service.url, "PETSTORE_KEY": "a-key"}
        with subprocess.Popen(
            [sys.executable, "-m", "petstore", "pets", "import", str(file)],
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert within(30, lambda: len(service.asked) == 4)
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate()
    assert process.returncode == 130
    assert errors.splitlines()[-1] == f"Error: interrupted: {WAY_ON.format(line=4, file=file)}"


def test_a_limit_that_lasts_too_long_ends_an_import_and_says_how_to_resume(file: Path) -> None:
    reached = error(429, message="the limit is reached", Retry_After=43200)
    with odd_service(USAGE, NO_BATCH, CREATED, reached) as service:
        words = Shop(service.url, "a-key").fail("pets", "import", file, status=7)
    assert words.startswith("the limit is reached, until ")
    assert words.endswith(f"; {WAY_ON.format(line=4, file=file)}")


def shown_import(service: OddService, file: Path) -> Shown:
    """Import a file on a terminal."""
    environment = Shop(service.url, "a-key").environment
    return shown_on_terminal("pets", "import", str(file), COLUMNS="120", **environment)


def test_failures_and_refused_rows_cannot_control_the_terminal(file: Path) -> None:
    steering = "\x1b]0;owned\x07"
    refusals = (error(400, message=steering), error(403, message=steering))
    with odd_service(USAGE, NO_BATCH, *refusals) as service:
        shown = shown_import(service, file)
    assert shown.status == 5
    assert "\x07" not in shown.raw
    assert r"line 2: \x1b]0;owned\x07" in shown.text
    assert r"Error: \x1b]0;owned\x07; all before line 4 of" in shown.text


def test_the_progress_bar_shows_a_wait_for_a_limit(file: Path) -> None:
    with odd_service(USAGE, error(429, Retry_After=1), ALL_CREATED) as service:
        shown = shown_import(service, file)
    assert shown.status == 1
    assert "Importing animals.csv  The limit is reached. Trying again in 1 s ━" in shown.text
    assert "Importing animals.csv ━" in shown.text
    assert shown.text.endswith("3 animals added, 1 row refused.\n")
