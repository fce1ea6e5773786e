"""What the macros of the pages write around a control."""

from pathlib import Path
from typing import Any

import jinja2

import petstore.console
from petstore.console.forms import Problem
from petstore.console.templates import begun

FOLDER = Path(petstore.console.__file__).parent / "templates"
PAGES = jinja2.Environment(loader=jinja2.FileSystemLoader(FOLDER), autoescape=True)
PAGES.filters["begun"] = begun
WRONG = Problem("petId", "expected a number", "Animal")


def written(call: str, **context: Any) -> str:
    """Return what a call of a macro writes."""
    imported = "{% from 'macros.html' import field, choice, problem_box %}"
    return PAGES.from_string(f"{imported}{{{{ {call} }}}}").render(context)


def test_a_control_is_described_by_its_hint_and_its_error() -> None:
    for call in (
        "field('petId', 'Animal', problem=p, hint='7')",
        "choice('petId', 'A', [], '', p, '7')",
    ):
        text = written(call, p=WRONG)
        assert 'aria-invalid="true" aria-describedby="petId-hint petId-problem"' in text
        assert 'id="petId-hint"' in text
        assert 'id="petId-problem">Expected a number<' in text


def test_the_same_field_of_two_forms_has_two_ids() -> None:
    text = written("field('name', 'Name', id='name-7', maxlength=255)")
    assert '<label for="name-7">' in text
    assert '<input id="name-7" name="name" type="text" value="" maxlength="255">' in text


def test_the_error_box_takes_the_focus_and_links_to_the_field() -> None:
    box = written("problem_box(p)", p=WRONG)
    assert 'tabindex="-1" autofocus' in box
    assert '<a href="#petId">Animal</a>: expected a number' in box


def test_an_error_without_a_field_has_no_link() -> None:
    box = written("problem_box(p)", p=Problem("", "somebody was faster"))
    assert "<a" not in box
    assert "<p>Somebody was faster</p>" in box


def test_the_error_box_links_to_each_field_if_there_are_several() -> None:
    several = WRONG._replace(others=(Problem("amount", "expected a price", "Price"),))
    box = written("problem_box(p)", p=several)
    assert "2 fields need another look:" in box
    assert '<li><a href="#petId">Animal</a>: expected a number</li>' in box
    assert '<li><a href="#amount">Price</a>: expected a price</li>' in box
    field = written("field('amount', 'Price', problem=p)", p=several)
    assert 'aria-invalid="true" aria-describedby="amount-problem"' in field


def test_the_enter_key_presses_no_button_that_mends_a_field() -> None:
    mended = WRONG._replace(ways=(("instead_petId", "7", "Use 7"),))
    text = written("field('petId', 'Animal', problem=p)", p=mended)
    assert text.index("aria-hidden") < text.index('name="instead_petId" value="7">Use 7<')
