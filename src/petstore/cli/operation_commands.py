"""Commands made from the table of operations: each field of an operation is an option."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from keyword import iskeyword
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import msgspec

from petstore.cli.client import CommandFailure, ExitStatus, client_option
from petstore.cli.options import (
    CATEGORY,
    DAY,
    ID,
    MOMENT,
    NONE,
    TEXT,
    Amount,
    Integer,
    OrWord,
    duration,
    duration_text,
    given,
)
from petstore.cli.resources import View, list_options, print_done, resource_options
from petstore.clock import SECOND
from petstore.domain.fields import INT64_MIN
from petstore.domain.names import MAX_SEARCHED, name_key

if TYPE_CHECKING:  # imported where it is used, so that `petstore --help` is instant
    from petstore.interface.operation import Operation
    from petstore_client import Client

_OF_LISTS = ("limit", "cursor", "count")
"""What ``list_options`` has for every list, or only HTTP needs."""


class OperationField(NamedTuple):
    """A field of a query or a body: its name in Python, the word for its option, its schema.

    A command may have a ``special`` type for it, such as one with a word for ``NONE``.
    """

    name: str
    word: str
    schema: Mapping[str, Any]
    is_required: bool
    can_be_null: bool
    special: click.ParamType[Any] | None = None

    @property
    def is_several(self) -> bool:
        return self.schema.get("type") == "array"

    @property
    def type(self) -> click.ParamType[Any]:
        if self.special is not None:
            return self.special
        kind: click.ParamType[Any] = TEXT
        match self.schema.get("items", self.schema):
            case {"enum": [*choices]}:
                kind = click.Choice(choices)
            case {"minimum": low, "maximum": high} if self.name.endswith("_seconds"):
                kind = duration(low, high)
            case {"minimum": low, "maximum": high} if self.name in ("amount", "refund"):
                kind = Amount(low, high)
            case {"minimum": low, "maximum": high} if low != INT64_MIN:
                kind = Integer(low, high)
            case {"type": "integer"}:
                kind = CATEGORY if self.name == "category_id" else click.INT
            case {"format": "date-time"}:
                kind = MOMENT
            case {"format": "date"}:
                kind = DAY
        return kind

    @property
    def help(self) -> str:
        """The first sentence of its description, in the words of the command line."""
        text = _plain(self.schema["description"])
        text = re.sub(r" \(RFC 3339\)", ", such as 2026-12-24T10:00:00Z", text)
        text = re.split(r"(?<=\.) (?!By default)", text)[0].removesuffix(".")
        text = re.sub("^true: (.)", lambda found: found[1].upper(), text)
        text = re.sub("; null means.*", "", text.replace(", in seconds", ", such as 1h"))
        text += "; a name or an ID" * (self.name == "category_id")
        match self.schema:
            case {"items": {"enum": [*choices]}}:
                text += f": {', '.join(choices)}"
        text += "; may be repeated" * (self.is_several and "repeated" not in text)
        default: Any = self.schema.get("default")
        if default and self.name.endswith("_seconds"):
            default = duration_text(default)
        if isinstance(default, list):
            default = " ".join(sorted(default))
        return f"{text}. [default: {default}]" if default else f"{text}."

    def options(self, *, can_be_removed: bool) -> Iterator[click.Parameter]:
        """Yield the option of this field, and another one that removes it."""
        match self.schema:
            case {"enum": ["-id", "id"]}:
                yield click.Option(["--newest", self.name], flag_value="-id", help="Newest first.")
            case {"enum": ["true"]}:
                yield click.Option([f"--{self.word}", self.name], flag_value="true", help=self.help)
            case {"type": "boolean"}:
                flags = f"--{self.word}/--no-{self.word.removeprefix('has-')}"
                yield click.Option([flags, self.name], default=None, help=self.help)
            case _:
                yield click.Option(
                    [f"--{self.word}", self.name],
                    type=self.type,
                    metavar=self.word.upper() if self.is_several and not self.special else None,
                    multiple=self.is_several,
                    required=self.is_required,
                    help=self.help,
                )
        if can_be_removed and self.special is None:
            flag, about = f"--no-{self.word}", f"Remove the {self.word.replace('-', ' ')}."
            yield click.Option([flag, f"no_{self.name}"], is_flag=True, help=about)


class OperationCommand(click.Command):
    """A command that calls an operation, by its ``method`` of the client library.

    Ids in the path are arguments, and so are the fields that ``arguments`` names. Every other field
    of the query or the body is an option, unless ``fixed`` has its value, it is ``left_out``, or
    ``only`` others are wanted. ``words`` has other names for options, and ``types`` other types.
    The ``view`` prints the result, or else ``show``, which gets the values of further ``options``,
    or a line says what is ``done``.
    """

    _text: str | None

    def __init__(  # noqa: PLR0913 - commands differ in so much
        self,
        name: str,
        operation_id: str,
        method: str,
        view: View[Any] | None = None,
        *,
        arguments: Sequence[str] = (),
        fixed: dict[str, object] | None = None,
        left_out: Sequence[str] = (),
        only: Sequence[str] | None = None,
        words: Mapping[str, str] | None = None,
        types: Mapping[str, click.ParamType[Any]] | None = None,
        show: Callable[..., object] | None = None,
        done: str = "",
        options: Sequence[click.Parameter] = (),
        client: Callable[[Any], Any] = client_option,
        help: str | None = None,  # noqa: A002 - as click calls it
    ) -> None:
        self._is_list = operation_id.startswith("list")
        decorate = list_options if self._is_list else resource_options
        run: Any = decorate(self._run, client)
        params = [*options, *reversed(run.__click_params__)]
        super().__init__(name, callback=run, params=params, help=help)
        self._operation_id, self._method = operation_id, method
        self._arguments, self._fixed = arguments, fixed or {}
        self._left_out, self._only, self._words = left_out, only, words or {}
        self._types, self._done = types or {}, done
        self._view, self._show = view or View(), show

    @cached_property
    def operation(self) -> "Operation":
        """The row of the table, which is imported late so that ``petstore --help`` is instant."""
        from petstore.interface.operations import OPERATIONS

        return next(each for each in OPERATIONS if each.id == self._operation_id)

    @property
    def help(self) -> str | None:
        if self._text is not None:
            return self._text
        summary = re.sub("^Get ", "Show ", _plain(self.operation.summary))
        return f"{summary}.\n\nIt needs the scope {self.operation.scope}."

    @help.setter  # noqa: A003 - as click calls it
    def help(self, text: str | None) -> None:
        self._text = text

    @cached_property
    def fields(self) -> dict[str, OperationField]:
        """The fields of the query or the body that are parameters, by the names in JSON."""
        struct = self.operation.query or self.operation.body
        apart = {*_OF_LISTS, *self._fixed, *self._left_out}
        return {
            name: field._replace(
                word=self._words.get(field.name, field.word), special=self._types.get(field.name)
            )
            for name, field in (_fields(struct) if struct else {}).items()
            if field.name not in apart and (self._only is None or field.name in self._only)
        }

    @cached_property
    def _ids(self) -> list[str]:
        return [_python_name(name) for name in self.operation.parameters]

    @cached_property
    def _parameters(self) -> list[click.Parameter]:
        made: list[click.Parameter] = []
        for place, name in enumerate(self._ids):
            metavar = name.removesuffix("_id").upper() if place else "ID"
            made.append(click.Argument([name], metavar=metavar, type=ID))
        for field in self.fields.values():
            can_be_removed = field.can_be_null and self.operation.method == "PATCH"
            if field.name in self._arguments:
                kind = OrWord(field.type, "none") if can_be_removed else field.type
                made.append(click.Argument([field.name], metavar=field.name.upper(), type=kind))
            else:
                made += field.options(can_be_removed=can_be_removed)
        return made

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return [*self._parameters, *super().get_params(ctx)]

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, and name a value that the service refuses as the command does."""
        try:
            return super().invoke(ctx)
        except CommandFailure as failure:
            name, _, rest = failure.message.partition(": ")
            field = self.fields.get(name)
            if field and failure.exit_code in (ExitStatus.REFUSED, ExitStatus.NOT_FOUND):
                parameter = next(each for each in self._parameters if each.name == field.name)
                msg = f"{parameter.get_error_hint(ctx)}: {rest}".replace("'", "", 2)
                raise CommandFailure(msg, failure.exit_code) from failure.__cause__
            raise

    def _run(self, *, client: "Client", **values: Any) -> None:
        ids = [values.pop(name) for name in self._ids]
        sent = {each.name: values.pop(each.name) for each in self.fields.values()}
        for name, word, *_ in self.fields.values():
            if values.pop(f"no_{name}", False):
                if sent[name] is not None:
                    msg = f"--{word} and --no-{word} cannot be used together"
                    raise click.UsageError(msg)
                sent[name] = NONE
            if isinstance(sent[name], tuple) and NONE in sent[name]:
                sent[name] = _none(word, sent[name])
            if name.endswith("_seconds") and sent[name] is not None:
                sent[name] //= SECOND
        if sent.get("category_id") is not None:
            sent["category_id"] = find_category(client, sent["category_id"])
        if self.operation.method == "PATCH":
            sent = given(sent | self._fixed)
        else:
            sent = {name: None if value == () else value for name, value in sent.items()}
            sent |= self._fixed
        method = attrgetter(self._method)(client)
        if self._is_list:
            (self._show or self._view.show_list)(partial(method, *ids, **sent), **values)
            return
        response = method.raw(*ids, **sent)
        is_gone = self.operation.success.content is None
        if self._show is None and (self._done or is_gone):
            named, done = f"{self.operation.resource}".capitalize(), self._done or "deleted"
            said = {"id": ids[-1], done: True} if is_gone else response.json()
            print_done(f"{named} {ids[-1]} {done}.", said, **values)
        else:
            (self._show or self._view.show)(response, **values)


def _none(word: str, values: tuple[Any, ...]) -> list[Any]:
    """Return no values, or refuse others beside the word for none."""
    if {*values} != {NONE}:
        msg = f"--{word}: expected values or the word for none of them, not both"
        raise click.UsageError(msg)
    return []


def find_category(client: "Client", value: int | str, option: str = "--category") -> int:
    """Return the id of a category that an option names, whatever the case of the name."""
    if isinstance(value, int):
        return value
    found = client.categories.list(name=value[:MAX_SEARCHED], limit=1) if value else iter(())
    category = next(found, None)
    if category is None or name_key(category.name) != name_key(value):
        msg = f"{option}: there is no category {value!r}"
        raise CommandFailure(msg, ExitStatus.NOT_FOUND)
    return category.id


def _fields(struct: type) -> dict[str, OperationField]:
    """Return the fields of a struct, by their names in JSON."""
    _, schemas = msgspec.json.schema_components([struct])
    schema = schemas[struct.__name__]
    required = schema.get("required", ())
    found = {}
    for name, member in schema["properties"].items():
        options = member.get("anyOf", [member])
        (value,) = (each for each in options if each.get("type") != "null")
        field = _python_name(name)
        # A category is named, not the id of one; and one type at a time.
        word = re.sub("_(id|seconds|)$", "", field).replace("_", "-")
        word = word.removesuffix("s") if value.get("type") == "array" else word
        found[name] = OperationField(
            field, word, member | value, name in required, len(options) > 1
        )
    return found


def _python_name(name: str) -> str:
    """Return what Python calls a field: ``categoryId`` is ``category_id``, and ``from`` from_``."""
    snake = re.sub("([A-Z])", r"_\1", name).lower()
    return f"{snake}_" if iskeyword(snake) else snake


def _plain(text: str) -> str:
    """Return a text of the table in the words of the command line."""
    text = text.replace("`", "")
    return re.sub("([Aa])n animal", r"\1 pet", text).replace("animal", "pet")
