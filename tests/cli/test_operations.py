"""Commands made from the table of operations: options, refusals, lists, JSON and CSV."""

import csv
import json
from typing import Annotated, Any, Literal

import pytest
from click.testing import CliRunner
from msgspec import UNSET, Meta, Struct, UnsetType

from petstore.cli.operations import OperationCommand
from petstore.domain.fields import Moment
from petstore.interface import operations
from petstore.interface.operation import Operation, Success
from support.command import Command
from support.odd_service import error, odd_service, response
from support.process import free_port
from support.shop import Shop


class Changes(Struct, rename="camel"):
    """What a change of a made-up resource may have."""

    name: Annotated[str, Meta(description="The `name` of the animal. Long.")] | UnsetType = UNSET
    category_id: Annotated[int, Meta(description="Its category.")] | UnsetType = UNSET
    colour: Annotated[Literal["red", "blue"], Meta(description="Colour.")] | UnsetType = UNSET
    weight: Annotated[int, Meta(ge=1, le=9, description="Weight.")] | UnsetType | None = UNSET
    born_at: Annotated[Moment, Meta(description="Birth (RFC 3339).")] | UnsetType = UNSET
    is_tame: Annotated[bool, Meta(description="Whether it is tame.")] | UnsetType = UNSET
    nap_seconds: Annotated[int, Meta(ge=0, le=60, description="Nap")] = 60
    tags: Annotated[list[str], Meta(description="Tags.")] | UnsetType = UNSET


def test_each_field_of_an_operation_is_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*_: object) -> Any:
        raise AssertionError

    row = Operation(
        id="updateYak",
        method="PATCH",
        path="/pets/{petId}",
        tag="Pets",
        summary="Change an animal",
        description="",
        handler=never,
        scope="pets:write",
        success=Success(200, "", Changes),
        body=Changes,
    )
    monkeypatch.setitem(operations.OPERATIONS_BY_ID, row.id, row)
    change = OperationCommand("change", "updateYak", "request")
    text = CliRunner().invoke(change, ["--help"], terminal_width=100).output
    options = text.partition("Options:")[2].partition("  --json")[0]
    assert "Change a pet.\n\n  It needs the scope pets:write.\n" in text
    assert [" ".join(line.split()) for line in options.strip().splitlines()] == [
        "--name TEXT The name of the pet.",
        "--category CATEGORY Its category; a name or an ID.",
        "--colour [blue|red] Colour.",
        "--weight INTEGER Weight. [1<=x<=9]",
        "--no-weight Remove the weight.",
        "--born-at TIME Birth, such as 2026-12-24T10:00:00Z.",
        "--is-tame / --no-is-tame Whether it is tame.",
        "--nap DURATION Nap. [default: 1m]",
        "--tag TAG Tags; may be repeated.",
        "--no-tag Remove the tag.",
    ]


SENT = """
pets list --no-status --newest              | GET /pets?hasStatus=false&sort=-id&limit=20
pets list --category 4 --id 1 --id 2        | GET /pets?categoryId=4&limit=20&id=1&id=2
pets show 7                                 | GET /pets?id=7
pets add Rex --category 4                   | POST /pets {"name": "Rex", "categoryId": 4}
pets change 7 --no-status                   | PATCH /pets/7 {"status": null}
pets change 7 --no-status --category 0      | PATCH /pets/7 {"categoryId": 0, "status": null}
pets delete 7                               | DELETE /pets/7
categories list --name Dogs                 | GET /categories?name=Dogs&limit=20
categories add Dogs                         | POST /categories {"name": "Dogs"}
categories show 7                           | GET /categories/7
categories change 7 --no-description        | PATCH /categories/7 {"description": null}
categories delete 7                         | DELETE /categories/7
orders show 3                               | GET /store/orders/3
orders approve 3                            | PATCH /store/orders/3 {"status": "approved"}
orders deliver 3                            | PATCH /store/orders/3 {"status": "delivered"}
orders change 3 --no-buyer                  | PATCH /store/orders/3 {"buyer": null}
orders list --pet 3 --buyer An              | GET /store/orders?petId=3&buyer=An&limit=20
orders place 3 --ship-date 2026-12-01T00:00:00Z \
    | POST /store/orders {"petId": 3, "shipDate": "2026-12-01T00:00:00Z"}
orders sell 3 --amount 5                    \
    | POST /store/orders {"petId": 3, "amount": 5, "complete": true}
orders return 3 --reason Ill --refund 7     \
    | PATCH /store/orders/3 {"refund": 7, "returnReason": "Ill", "status": "returned"}
orders cancel 3 --reason Ill                \
    | PATCH /store/orders/3 {"cancelReason": "Ill", "status": "cancelled"}
sales --from 2026-12-01 --by category       | GET /store/sales?from=2026-12-01&by=category
inventory --by category                     | GET /store/inventory?by=category
webhooks list --failing                     | GET /webhooks?failing=true&limit=20
webhooks create https://a.b --type pet.created \
    | POST /webhooks {"url": "https://a.b", "types": ["pet.created"]}
webhooks change 7 --endpoint https://a.b    | PATCH /webhooks/7 {"url": "https://a.b"}
webhooks change 7 --no-type                 | PATCH /webhooks/7 {"types": []}
webhooks show 7                             | GET /webhooks/7
webhooks test 7                             | POST /webhooks/7/test
webhooks enable 7                           | PATCH /webhooks/7 {"enabled": true}
webhooks delete 7                           | DELETE /webhooks/7
webhooks rotate 7 --grace 1h                | POST /webhooks/7/rotate {"graceSeconds": 3600}
webhooks deliveries 7 --state failed        | GET /webhooks/7/deliveries?state=failed&limit=20
webhooks retry 7 3                          | POST /webhooks/7/deliveries/3/retry
webhooks recover 7 --since 2026-12-01T00:00:00Z \
    | POST /webhooks/7/recover {"since": "2026-12-01T00:00:00Z"}
webhooks disable 7                          | PATCH /webhooks/7 {"enabled": false}
imports delete 7                            | DELETE /imports/7
keys create --name a --per-day 9 --scope pets:read --network 10.0.0.0/8 --network 192.0.2.7 \
    | POST /keys {"name": "a", "perDay": 9, "scopes": ["pets:read"], \
    "allowedNetworks": ["10.0.0.0/8", "192.0.2.7"]}
keys change 7 --no-network --no-expires-in  \
    | PATCH /keys/7 {"expiresAt": null, "allowedNetworks": []}
rotate-key --grace 1h                       | POST /keys/current/rotate {"graceSeconds": 3600}
people change 7 --role viewer --login ada   | PATCH /people/7 {"login": "ada", "role": "viewer"}
people disable 7                            | PATCH /people/7 {"state": "disabled"}
people enable 7                             | PATCH /people/7 {"state": "active"}
""".replace("\\\n", "")


def rows(table: str) -> list[tuple[str, str]]:
    """Return the command and what is expected of it, for each line of a table."""
    pairs = (line.split("|", 1) for line in table.strip().splitlines())
    return [(command.strip(), expected.strip()) for command, expected in pairs]


@pytest.mark.parametrize(("arguments", "request_line"), rows(SENT))
def test_a_command_sends_what_its_options_say(arguments: str, request_line: str) -> None:
    with odd_service(error(403)) as service:
        assert Shop(service.url, "a-key")(*arguments.split()).exit_code == 5
        (asked,) = service.asked
    method, target, *body = request_line.split(" ", 2)
    assert (asked.method, asked.target) == (method, f"/v1{target}")
    assert json.loads(asked.body or b"null") == json.loads(*body or ["null"])


REFUSED = """
pets add Rex                                | Missing option '--category'.
pets add Rex --category 1 --status lost     | Invalid value for '--status': 'lost' is not one of
pets add \udce9 --category 1                | Invalid value for 'NAME': '\\udce9': expected text
pets list --id x                            | Invalid value for '--id'
pets list --name \udce9                     | Invalid value for '--name': '\\udce9': expected text
pets list --key a-key                       | No such option '--key'
webhooks list --csv --json                  | --json and --csv cannot be used together
pets list --limit 5 --all                   | --limit and --all cannot be used together
orders list --limit 0                       | Invalid value for '--limit'
pets show 0                                 | Invalid value for 'ID'
pets show 1/../2                            | Invalid value for 'ID'
pets change 1                               | nothing to change: name at least one option
orders change 1 --no-buyer --buyer A        | --buyer and --no-buyer cannot be used together
orders place 1 --ship-date 2026-12-24       | Invalid value for '--ship-date': '2026-12-24':
orders place 1 --amount -5                  | Invalid value for '--amount'
sales --from 2026-13-01                     | Invalid value for '--from': '2026-13-01': expected a
webhooks recover 1                          | Missing option '--since'.
webhooks rotate 1 --grace 8d                | Invalid value for '--grace': '8d': expected a number
webhooks create https://a.example --type x  | Invalid value for '--type'
people change 1 --role owner                | Invalid value for '--role'
"""


@pytest.mark.parametrize(("arguments", "words"), rows(REFUSED))
def test_an_invalid_value_is_refused_before_it_is_sent(arguments: str, words: str) -> None:
    result = Shop(f"http://127.0.0.1:{free_port()}", "a-key")(*arguments.split(" "))
    assert result.exit_code == 2
    assert words in result.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("pets", "add", "  ", "--category", 1), 2, "NAME: expected 1 to 255"),
        (("pets", "list", "--category", 2**63), 2, "--category: expected "),
        (("pets", "list", "--name", ""), 2, "--name: expected 1 to 100"),
        (("pets", "list", "--newest", "--name", "b"), 2, "--newest: expected no sort together"),
        (("pets", "list", "--no-status", "--status", "sold"), 2, "--has-status: expected true, or"),
        (("orders", "list", "--newest", "--buyer", "A"), 2, "--newest: expected no sort"),
        (("sales", "--time-zone", "Mars"), 2, "--time-zone: expected the name of a time zone"),
        (("pets", "show", 2**62), 3, f"there is no pet {2**62}"),
        (("orders", "place", 2**62), 3, "PET_ID: expected an existing pet; there is no pet 461"),
        (("pets", "list", "--category", "Cows"), 3, "--category: there is no category 'Cows'"),
        (("pets", "add", "Rex", "--category", ""), 3, "--category: there is no category ''"),
    ],
)
def test_a_value_that_the_service_refuses_is_named_as_on_the_command_line(
    shop: Shop, arguments: tuple[object, ...], status: int, words: str
) -> None:
    assert shop.fail(*arguments, status=status).startswith(words)


def test_a_category_is_named(shop: Shop) -> None:
    for name in ("Kn\u00f6del yaks", "Kn\u00f6del"):
        known = shop.ask("categories", "add", name)["id"]
    pet = shop.ask("pets", "add", "Rex", "--category", "KNO\u0308DEL")
    assert pet["categoryId"] == known
    assert shop.ask("pets", "list", "--category", "kn\u00f6del") == [pet]
    assert shop.ask("categories", "show", "kn\u00f6del")["id"] == known
    assert shop.ask("pets", "change", pet["id"], "--category", "Kn\u00f6del yaks") != pet


# Lists and failures, as JSON and CSV


def test_a_list_is_printed_as_csv_that_is_safe_in_a_spreadsheet() -> None:
    webhook = {"id": 7, "url": "https://a.b", "types": ["pet.created"], "enabled": True}
    webhook |= {"createdAt": "2026-12-01T12:00:00Z", "owner": {"type": "key", "id": 3}}
    with odd_service(response(200, [webhook | {"description": "=1+1"}])) as service:
        printed = Shop(service.url, "a-key").succeed("webhooks", "list", "--csv")
    head, row = csv.reader(printed.splitlines())
    shown = {"id": "7", "types": '["pet.created"]', "enabled": "true", "description": "'=1+1"}
    assert shown.items() <= dict(zip(head, row, strict=True)).items()
    assert row[head.index("lastSuccessAt")] == ""


def test_a_short_page_is_followed_by_no_more_than_is_wanted() -> None:
    pets = [{"id": number, "name": "Rex", "categoryId": 1} for number in (1, 2, 3)]
    pages = [
        response(200, pets[:1], Link='</v1/pets?cursor=a>; rel="next"'),
        response(200, pets[1:], Link='</v1/pets?cursor=b>; rel="next"'),
    ]
    with odd_service(*pages) as service:
        found = Shop(service.url, "a-key")("pets", "list", "--limit", 2, "--json")
        targets = [asked.target for asked in service.asked]
    assert json.loads(found.stdout) == pets[:2]
    assert found.stderr == "(there are more: see --all and --limit)\n"
    assert targets == ["/v1/pets?limit=2", "/v1/pets?limit=2&cursor=a"]


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
