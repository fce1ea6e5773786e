"""Forms that follow from the description of their fields."""

from collections.abc import Sequence

from petstore.console.forms import (
    Field,
    FieldSet,
    Form,
    Problem,
    isolated,
    optional,
    words,
)
from petstore.errors import InvalidBody

FIELDS = FieldSet(
    Field("name", "Name"),
    Field("dailyLimit", "Limit", parse=optional),
    Field(
        *("kinds", "Kinds"),
        show=lambda resource: words(resource.kinds),
        parse=str.split,
        control="boxes",
    ),
)
SHOWN = {"name": "Till1", "dailyLimit": "", "kinds": "a b"}
OPENED = {f"was_{name}": [text] for name, text in SHOWN.items()}


def sent(**fields: Sequence[str]) -> Form:
    """Return a form that was opened as ``SHOWN``."""
    return Form(OPENED | fields)


def test_direction_characters_in_a_name_cannot_leave_its_isolate() -> None:
    for name, shown in (
        ("Bella", "Bella"),
        ("\N{RIGHT-TO-LEFT OVERRIDE}gnp.evil", "\N{RIGHT-TO-LEFT OVERRIDE}gnp.evil"),
        ("a\N{POP DIRECTIONAL ISOLATE}b", "ab"),
        ("a\N{RIGHT-TO-LEFT ISOLATE}\N{LEFT-TO-RIGHT ISOLATE}\N{FIRST STRONG ISOLATE}c", "ac"),
        ("a\n\r\x1c\x1d\x1e\x85\N{PARAGRAPH SEPARATOR}b", "a       b"),
    ):
        assert isolated(name) == f"\u2068{shown}\u2069"


def test_a_text_that_is_missing_is_left_out_or_has_its_default() -> None:
    typed = FIELDS.typed(Form({"name": [" Bar "], "kinds": ["b", "a"]}))
    assert FIELDS.body(typed) == {"name": "Bar", "kinds": ["a", "b"]}
    form, defaults = Form({"name": ["Bar"]}), {"name": "Till", "kinds": "a"}
    assert FIELDS.new(form, None, defaults).typed == {"name": "Bar", "dailyLimit": "", "kinds": "a"}
    refused = FIELDS.new(form, InvalidBody("name: expected another"), defaults)
    assert refused.typed["kinds"] == ""


def test_a_refused_form_has_what_was_typed_and_the_label_of_the_field() -> None:
    error = InvalidBody("dailyLimit: expected a number")
    typed = sent(dailyLimit=["many"], version=['"0"'])
    form = FIELDS.shown(SHOWN | {"name": "Bar"}, '"1"', typed, error)
    assert (form.typed["name"], form.opened["name"]) == ("Till1", "Till1")
    assert (form.typed["dailyLimit"], form.opened["dailyLimit"], form.version) == (
        "many",
        "",
        '"0"',
    )
    assert form.problem == Problem("dailyLimit", "expected a number", "Limit")


def test_a_refused_form_has_everything_that_is_wrong_in_the_order_of_its_fields() -> None:
    error = InvalidBody("dailyLimit: expected a number")
    error.others = ("other: unknown", "name: expected another", "somebody was faster")
    problem = FIELDS.problem(error)
    assert problem
    assert [each.field for each in problem.all] == ["", "name", "dailyLimit", "other"]
    limit = problem.about("dailyLimit")
    assert limit
    assert (limit.label, limit.text) == ("Limit", "expected a number")
    assert problem.about("kinds") is None
