"""What the service weighs for a reader, so that nobody makes it heavier unseen."""

import pytest

from support.service import Service
from support.structure import (
    classes_named_twice,
    errors_raised_again,
    files_run,
    long_functions,
)
from support.visitor import signed_in_person


def test_no_function_has_more_than_60_lines() -> None:
    assert long_functions() == []


def test_no_class_name_is_used_twice() -> None:
    assert classes_named_twice() == []


def test_no_error_is_stored_and_raised_later() -> None:
    assert errors_raised_again() == []


@pytest.mark.anyio
async def test_a_cold_list_runs_few_files(service: Service) -> None:
    token = (await service.issue()).token
    files = await files_run(
        lambda number: service.request("GET", f"/v1/pets?limit={number}", token)
    )
    assert len(files) <= 20, sorted(files)


@pytest.mark.anyio
@pytest.mark.usefixtures("dogs")
async def test_a_change_in_the_console_runs_few_files(service: Service) -> None:
    visitor = await signed_in_person(service, role="clerk")
    await visitor.submit("/pets", name="0", categoryId="1", status="available", once="a")
    files = await files_run(
        lambda number: visitor.post("/pets/1", was_name=str(number - 1), name=str(number))
    )
    assert len(files) <= 35, sorted(files)
