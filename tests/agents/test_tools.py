"""The tools of agents, each against a real store."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from petstore.agents.tools import TOOLS
from support.agents import Agent, agent_in
from support.service import Service, running_service

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
async def writer(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Agent]:
    """An agent that may write, in a store of the whole file."""
    store = tmp_path_factory.mktemp("store") / "petstore.db"
    async with running_service(store) as service, agent_in(service, writes=True) as agent:
        yield agent


def test_the_tools_are_described_in_few_words_and_need_no_other_document() -> None:
    described = "".join(tool.described.model_dump_json(exclude_none=True) for tool in TOOLS)
    assert len(described) <= 15_000
    assert "$ref" not in described
    for tool in TOOLS:
        Draft202012Validator.check_schema(tool.described.input_schema)
        Draft202012Validator.check_schema(tool.described.output_schema)


def test_a_tool_says_whether_it_changes_the_store() -> None:
    hints = {
        name: tuple(
            tool.name
            for tool in TOOLS
            if getattr(tool.described.annotations, name) and not tool.name.startswith("get_")
        )
        for name in ("read_only_hint", "destructive_hint")
    }
    assert hints == {
        "read_only_hint": (
            *("list_pets", "list_categories", "count_pets", "list_orders", "count_sales"),
            "list_events",
        ),
        "destructive_hint": ("update_pet", "place_order", "update_order"),
    }


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        ("list_pets", {"color": "red"}, "color: unknown; expected limit, cursor, status"),
        ("list_pets", {"x" * 2000: 1}, "x: unknown; expected limit"),
        ("list_pets", {"limit": "five"}, "limit: expected an integer"),
        ("list_pets", {"limit": True}, "limit: expected an integer"),
        ("list_pets", {"limit": 2.5}, "limit: expected an integer"),
        ("list_pets", {"limit": "[" * 5000}, "limit: expected an integer"),
        ("list_pets", {"status": "lost"}, "400 invalid_parameter: status: expected one of"),
        ("list_pets", {"id": []}, "id: expected at least one"),
        ("list_pets", {"id": [1, "a"]}, "id[1]: expected an integer"),
        ("list_pets", {"id": [None] * 101}, "id: expected at most 100 items"),
        ("list_pets", {"id": [[[[]]]]}, "id[0]: expected an integer"),
        ("list_pets", {"name": "x" * 2000}, "name: expected at most 100 items or characters"),
        ("list_pets", {"cursor": "x"}, "400 invalid_parameter: cursor: expected the cursor"),
        ("get_pet", {}, "petId: required"),
        ("get_pet", {"petId": None}, "petId: required"),
        ("get_pet", {"petId": 2**70}, "400 invalid_parameter: id: expected"),
        ("add_category", {"name": "a\0"}, "400 invalid_body: name: expected"),
        ("add_category", {"name": "a", "idempotencyKey": "a b"}, "expected visible ASCII"),
        ("add_pets", {"pets": []}, "400 invalid_body: the body: expected a JSON array of 1"),
        ("add_pets", {"pets": [{"name": "x"}]}, "pets[0].categoryId: required"),
        ("add_pets", {"pets": [{"name": "x", "categoryId": 1, "p": 1}]}, "pets[0].p: unknown"),
        ("update_pet", {"petId": 1, "name": "x"}, "version: required"),
        ("update_pet", {"petId": 1, "name": "x", "version": "*"}, "version: expected a text of"),
    ],
)
async def test_invalid_arguments_are_named_with_what_to_do(
    writer: Agent, tool: str, arguments: dict[str, Any], told: str
) -> None:
    text = await writer.fail(tool, **arguments)
    assert told in text
    assert "\nWhat to do: Correct the arguments and call again." in text
    assert len(text) < 2000


async def test_arguments_are_taken_as_agents_send_them(service: Service) -> None:
    async with agent_in(service, writes=True) as agent:
        pets = (
            '[{"name": "Bo", "categoryId": 1.0, "status": null}, {"name": "Al", "categoryId": "1"}]'
        )
        added = (await agent.call("add_pets", pets=pets))["pets"]
        assert (await agent.call("get_pet", petId="1"))["pet"] == added[0]
        unused = {"status": None, "name": None, "cursor": None}
        for ids in ("[2]", [2.0], ["2"]):
            found = await agent.call("list_pets", id=ids, limit=3.0, hasStatus="false", **unused)
            assert found["pets"] == added[1:]


async def test_a_list_has_a_cursor_until_its_last_page(service: Service) -> None:
    async with agent_in(service, writes=True) as agent:
        pets = [{"name": name, "categoryId": 1} for name in ("Ada", "Bo", "Cleo")]
        added = await agent.call("add_pets", pets=pets)
        first = await agent.call("list_pets", limit=2, status=None)
        last = await agent.call("list_pets", limit=2, cursor=first["next"])
        found = await agent.call("list_pets", name="cle")
    assert first["pets"] + last["pets"] == added["pets"]
    assert last.keys() == {"pets"}
    assert [pet["name"] for pet in found["pets"]] == ["Cleo"]


async def test_a_list_has_20_items_unless_the_agent_names_a_limit(service: Service) -> None:
    async with agent_in(service, writes=True) as agent:
        await agent.call("add_pets", pets=[{"name": "Bo", "categoryId": 1}] * 21)
        page = await agent.call("list_pets")
    assert len(page["pets"]) == 20


async def test_an_agent_overwrites_nothing_that_it_has_not_seen(service: Service) -> None:
    async with agent_in(service, writes=True) as agent:
        await agent.call("add_pets", pets=[{"name": "Bo", "categoryId": 1}])
        seen = await agent.call("get_pet", petId=1)
        changed = await agent.call("update_pet", petId=1, version=seen["version"], name="Bob")
        told = await agent.fail("update_pet", petId=1, version=seen["version"], name="Rex")
        assert told.startswith("412 precondition_failed: ")
        assert "What to do: Somebody has changed it. Read it again" in told
        assert await agent.call("get_pet", petId=1) == changed
    assert changed["pet"] == {"id": 1, "name": "Bob", "categoryId": 1}


async def test_an_agent_clears_a_status_with_null(service: Service) -> None:
    async with agent_in(service, writes=True) as agent:
        await agent.call("add_pets", pets=[{"name": "Bo", "categoryId": 1, "status": "available"}])
        version = (await agent.call("get_pet", petId=1))["version"]
        changed = await agent.call("update_pet", petId=1, version=version, status=None)
    assert "status" not in changed["pet"]


async def test_an_agent_sells_an_animal_and_sees_it_counted(service: Service) -> None:
    async with agent_in(service, writes=True) as agent:
        category = (await agent.call("add_category", name="Dogs"))["category"]
        pet = {"name": "Bo", "categoryId": category["id"], "status": "available"}
        await agent.call("add_pets", pets=[pet, pet])
        sold = await agent.call("place_order", petId=1, complete=True, amount=900, buyer="Jane")
        placed = await agent.call("place_order", petId=2)
        order = await agent.call("get_order", orderId=placed["order"]["id"])
        cancelled = await agent.call(
            *("update_order",),
            orderId=2,
            version=order["version"],
            status="cancelled",
        )
        counts = await agent.call("count_pets", by="category")
        sales = await agent.call("count_sales", **{"from": "2026-12-01", "to": "2026-12-01"})
        orders = await agent.call("list_orders", buyer="ja")
        history = await agent.call("list_events", resource="pet/1", type=["pet.updated"])
        categories = await agent.call("list_categories")
    assert sold["order"]["status"] == "delivered"
    assert cancelled["order"]["status"] == "cancelled"
    assert counts["categories"] == [{"categoryId": 1, "available": 1, "pending": 0, "sold": 1}]
    assert sales["rows"][0]["amount"] == 900
    assert [order["id"] for order in orders["orders"]] == [1]
    assert [event["actor"] for event in history["events"]] == [{"type": "key", "id": 1}]
    assert categories["categories"] == [category]


async def test_a_repeated_write_is_refused_where_it_would_act_twice(service: Service) -> None:
    async with agent_in(service, writes=True) as agent:
        await agent.call("add_category", name="Dogs")
        await agent.call("add_pets", pets=[{"name": "Bo", "categoryId": 1, "status": "available"}])
        await agent.call("place_order", petId=1)
        taken = await agent.fail("add_category", name="Dogs")
        ordered = await agent.fail("place_order", petId=1)
    assert taken.startswith("409 category_name_taken: ")
    assert ordered.startswith("409 pet_not_available: ")


async def test_a_call_with_the_idempotency_key_of_another_one_acts_once(service: Service) -> None:
    async with agent_in(service, writes=True) as agent:
        call = {"pets": [{"name": "Bo", "categoryId": 1}], "idempotencyKey": "k-1"}
        assert await agent.call("add_pets", **call) == await agent.call("add_pets", **call)
        told = await agent.fail("add_pets", **{**call, "pets": [{"name": "X", "categoryId": 1}]})
        pets = await agent.call("list_pets")
    assert len(pets["pets"]) == 1
    assert "What to do: Leave idempotencyKey out: it belongs to another call." in told


async def test_the_usage_has_the_scopes(service: Service) -> None:
    async with agent_in(service, "pets:read") as agent:
        assert (await agent.call("get_usage"))["scopes"] == ["pets:read"]
