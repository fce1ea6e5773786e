"""``--json``: of every command, and of every failure."""

import csv
import json
import re
import secrets
from collections.abc import Iterator
from typing import Any

import click

from petstore.cli.main import main
from support.command import Command
from support.odd_service import error, odd_service, response
from support.shop import Shop

WITHOUT_JSON = {
    "serve": "runs until it is stopped; --log-format json is for its log",
    "deliver": "runs until it is stopped; --log-format json is for its log",
    "mcp": "runs until it is stopped, and speaks the Model Context Protocol",
    "backup": "writes a file; its exit status says all",
    "restore": "writes a file; its exit status says all",
    "pets export": "writes CSV",
    "orders export": "writes CSV for spreadsheets; orders list --all --json prints the same",
}


def commands_in(group: click.Group) -> Iterator[tuple[str, click.Command]]:
    """Yield every command below ``group``, with what stands after ``petstore``."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from ((f"{name} {words}", below) for words, below in commands_in(command))
        else:
            yield name, command


def refusal(printed: str) -> dict[str, Any]:
    """Return the failure in the last line of standard error."""
    failure: dict[str, Any] = json.loads(printed.splitlines()[-1])
    return failure


def test_every_command_prints_json_unless_it_has_a_reason() -> None:
    without = {
        words
        for words, command in commands_in(main)
        if not any("--json" in parameter.opts for parameter in command.params)
    }
    assert without == set(WITHOUT_JSON)


def test_the_cursor_of_a_list_leads_through_all_of_it(shop: Shop) -> None:
    category = secrets.randbelow(2**62)  # in which no other test has pets
    ids = [shop.ask("pets", "add", f"No. {n}", "--category", category)["id"] for n in range(3)]
    asked = ("pets", "list", "--category", category, "--limit", 2)
    page = shop(*asked, "--json")
    assert [pet["id"] for pet in json.loads(page.stdout)] == ids[:2]
    said = re.fullmatch(r"\(there are more: see --all, --limit, or --cursor (.+)\)\n", page.stderr)
    assert said is not None
    rest = shop(*asked, "--json", "--cursor", said[1])
    assert ([pet["id"] for pet in json.loads(rest.stdout)], rest.stderr) == (ids[2:], "")


def test_a_list_is_printed_as_csv_that_is_safe_in_a_spreadsheet() -> None:
    webhook = {"id": 7, "url": "https://a.b", "types": ["pet.created"], "enabled": True}
    webhook |= {"createdAt": "2026-12-01T12:00:00Z", "owner": {"type": "key", "id": 3}}
    with odd_service(response(200, [webhook | {"description": "=1+1"}])) as service:
        shop = Shop(service.url, "a-key")
        head, row = csv.reader(shop.succeed("webhooks", "list", "--csv").splitlines())
        both = shop("webhooks", "list", "--csv", "--json")
    assert (
        dict(zip(head, row, strict=True)).items()
        >= {
            "id": "7",
            "types": '["pet.created"]',
            "enabled": "true",
            "description": "'=1+1",
            "lastSuccessAt": "",
        }.items()
    )
    assert both.exit_code == 2
    assert refusal(both.stderr)["message"] == "--json and --csv cannot be used together"


def test_a_short_page_is_followed_by_no_more_than_is_wanted() -> None:
    pets = [{"id": number, "name": "Rex", "categoryId": 1} for number in (1, 2, 3)]
    pages = [
        response(200, pets[:1], Link='</v1/pets?cursor=a>; rel="next"'),
        response(200, pets[1:], Link='</v1/pets?cursor=b>; rel="next"'),
    ]
    with odd_service(*pages) as service:
        arguments = ("pets", "list", "--limit", 3, "--cursor", "z")
        found = Shop(service.url, "a-key").ask(*arguments)
        targets = [asked.target for asked in service.asked]
    assert found == pets
    assert targets == ["/v1/pets?limit=3&cursor=z", "/v1/pets?limit=2&cursor=a"]


def test_a_refusal_of_the_service_is_its_error() -> None:
    with odd_service(error(409, "pet_reserved", "pet 7 is reserved")) as service:
        failed = Shop(service.url, "a-key")("pets", "delete", 7, "--json")
    assert (failed.exit_code, failed.stdout) == (4, "")
    assert json.loads(failed.stderr) == {
        "code": "pet_reserved",
        "message": "pet 7 is reserved",
        "status": 409,
    }


def test_a_refusal_of_the_store_is_its_error(admin_shop: Shop) -> None:
    failed = admin_shop("keys", "show", 2**60, "--json")
    assert (failed.exit_code, failed.stdout) == (3, "")
    message = f"there is no key {2**60}"
    assert refusal(failed.stderr) == {"code": "not_found", "message": message, "status": 404}


def test_wrong_usage_is_an_error_without_code_and_status(command: Command) -> None:
    failed = command("pets", "list", "--json", "--limit", "0")
    assert (failed.exit_code, failed.stdout) == (2, "")
    failure = refusal(failed.stderr)
    assert failure["message"].startswith("Invalid value for '--limit'")
    assert (failure["code"], failure["status"]) == (None, None)
