"""``--json`` and ``--csv``: lists, and failures."""

import csv
import json
import re
import secrets

from support.command import Command
from support.odd_service import error, odd_service, response
from support.shop import Shop


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
    assert "--json and --csv cannot be used together" in both.stderr


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


def test_a_failure_is_the_error_of_the_service_or_has_no_code(
    admin_shop: Shop, command: Command
) -> None:
    with odd_service(error(409, "pet_reserved", "pet 7 is reserved")) as service:
        reserved = Shop(service.url, "a-key")("pets", "delete", 7, "--json")
    missing = admin_shop("keys", "show", 2**60, "--json")
    misused = command("pets", "list", "--json", "--limit", "0")
    for failed, exit_code, code, message, status in (
        (reserved, 4, "pet_reserved", "pet 7 is reserved", 409),
        (missing, 3, "not_found", f"there is no key {2**60}", 404),
        (misused, 2, None, "Invalid value for '--limit': 0 is not in the range 1<=x<=100.", None),
    ):
        assert (failed.exit_code, failed.stdout) == (exit_code, "")
        failure = {"code": code, "message": message, "status": status}
        assert json.loads(failed.stderr.splitlines()[-1]) == failure
