"""Commands made from the table of operations: each field of an operation is an option."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from keyword import iskeyword
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import click
import msgspec

from petstore.cli.client import CommandFailure, ExitStatus, client_option
from petstore.cli.options import (
    CATEGORY,
    DAY,
    ID,
    MOMENT,
    TEXT,
    Amount,
    Command,
    Integer,
    Parsed,
    duration,
    duration_text,
    json_option,
)
from petstore.cli.output import (
    Secret,
    print_csv,
    print_json,
    print_resource,
    print_secret,
    print_table,
)
from petstore.clock import SECOND
from petstore.domain.fields import INT64_MIN
from petstore.domain.names import MAX_SEARCHED, name_key

if TYPE_CHECKING:  # imported where it is used, so that `petstore --help` is instant
    from petstore.interface.operation import Operation
    from petstore_client import Client, Listed

MAX_PAGE = 100
_DEFAULT_LIMIT = 20
_LEFT_OUT = {"limit", "cursor", "count", "quantity"}
"""Fields that every list has as options, that only HTTP needs, or that have one value."""

_WORDS = {
    "allowed_networks": "network",
    "cancel_reason": "reason",
    "return_reason": "reason",
    "expires_at": "expires-in",
    "url": "endpoint",  # --url is the service
}
_LIFE = duration(min_seconds=1)
_END = Parsed(
    "duration",
    lambda life: datetime.now(UTC) + timedelta(milliseconds=_LIFE.convert(life, None, None)),
    "a duration",
)


class OperationField(NamedTuple):
    """A field of a query or a body: its name in Python, the word for its option, its schema."""

    name: str
    word: str
    schema: Mapping[str, Any]
    is_required: bool
    can_be_removed: bool

    @property
    def is_several(self) -> bool:
        return self.schema.get("type") == "array"

    @property
    def type(self) -> click.ParamType[Any]:
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
                kind = _END if self.name == "expires_at" else MOMENT
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
        text += ", such as 30d" * (self.name == "expires_at")
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

    def options(self) -> Iterator[click.Parameter]:
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
                    metavar=self.word.upper() if self.is_several else None,
                    multiple=self.is_several,
                    required=self.is_required,
                    help=self.help,
                )
        if self.can_be_removed:
            flag, about = f"--no-{self.word}", f"Remove the {self.word.replace('-', ' ')}."
            yield click.Option([flag, f"no_{self.name}"], is_flag=True, help=about)

    def value(self, given: Any, *, removes: bool) -> Any:
        """Return what to send, ``UNSET`` to leave the field out."""
        if given in (None, ()):
            return ([] if self.is_several else None) if removes else msgspec.UNSET
        if removes:
            raise click.UsageError(f"--{self.word} and --no-{self.word} cannot be used together")
        return given // SECOND if self.name.endswith("_seconds") else given


class OperationCommand(click.Command):
    """A command that calls an operation, by its ``method`` of the client library.

    Ids in the path are arguments, and so are the fields that ``arguments`` names. Every other field
    of the query or the body is an option or, if it is ``fixed``, has a value; ``only`` says which
    others there are. A table has ``columns``; a ``secret`` is printed alone.
    """

    _text: str | None

    def __init__(  # noqa: PLR0913 - commands differ in so much
        self,
        name: str,
        operation_id: str,
        method: str,
        *,
        arguments: Sequence[str] = (),
        fixed: Mapping[str, object] | None = None,
        only: Sequence[str] | None = None,
        columns: Sequence[str] = (),
        secret: Secret | None = None,
        client: Callable[[Any], Any] = client_option,
        help: str | None = None,  # noqa: A002 - as click calls it
    ) -> None:
        self._is_list = operation_id.startswith("list")
        run: Any = json_option(client(self._run))
        if self._is_list:
            run = _list_options(run)
        super().__init__(name, callback=run, params=[*reversed(run.__click_params__)], help=help)
        self._operation_id, self._method = operation_id, method
        self._arguments, self._fixed = arguments, fixed or {}
        self._only = () if fixed and only is None else only
        self._columns, self._secret = columns, secret

    @cached_property
    def operation(self) -> "Operation":
        from petstore.interface.operations import OPERATIONS_BY_ID

        return OPERATIONS_BY_ID[self._operation_id]

    @property
    def help(self) -> str | None:
        if self._text is not None:
            return self._text
        summary = re.sub("^Get ", "Show ", _plain(self.operation.summary))
        scope = self.operation.scope
        return f"{summary}." + (f"\n\nIt needs the scope {scope}." if scope else "")

    @help.setter  # noqa: A003 - as click calls it
    def help(self, text: str | None) -> None:
        self._text = text

    @cached_property
    def fields(self) -> dict[str, OperationField]:
        """Its fields by their names in JSON."""
        struct = self.operation.query or self.operation.body
        if struct is None:
            return {}
        found = _fields(struct, is_change=self.operation.method == "PATCH")
        apart = {*_LEFT_OUT, *self._fixed}
        wanted = {field.name for field in found.values()} - apart
        if self._only is not None:
            wanted &= {*self._only, *self._arguments}
        return {name: field for name, field in found.items() if field.name in wanted}

    @cached_property
    def _ids(self) -> list[str]:
        return [_python_name(name) for name in self.operation.parameters]

    @cached_property
    def _parameters(self) -> list[click.Parameter]:
        made: list[click.Parameter] = []
        for place, name in enumerate(self._ids):
            metavar = name.removesuffix("_id").upper() if place else "ID"
            kind = CATEGORY if name == "category_id" else ID
            made.append(click.Argument([name], metavar=metavar, type=kind))
        for field in self.fields.values():
            if field.name in self._arguments:
                metavar = field.name.upper()
                made.append(click.Argument([field.name], metavar=metavar, type=field.type))
            else:
                made += field.options()
        return made

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return [*self._parameters, *super().get_params(ctx)]

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, and name a value that the service refuses as the command does."""
        try:
            return super().invoke(ctx)
        except CommandFailure as failure:
            name, _, rest = failure.message.partition(": ")
            field = self.fields.get(name.partition("[")[0])
            if field and failure.exit_code in (ExitStatus.REFUSED, ExitStatus.NOT_FOUND):
                parameter = next(each for each in self._parameters if each.name == field.name)
                msg = f"{parameter.get_error_hint(ctx)}: {rest}".replace("'", "", 2)
                raise CommandFailure(msg, failure.exit_code) from failure.__cause__
            raise

    def _run(self, *, client: "Client", as_json: bool, **values: Any) -> None:
        ids = [values.pop(name) for name in self._ids]
        sent: dict[str, Any] = {**self._fixed}
        for field in self.fields.values():
            removes = values.pop(f"no_{field.name}", False)
            value = field.value(values.pop(field.name), removes=removes)
            if value is not msgspec.UNSET:
                sent[field.name] = value
        if self.operation.method == "PATCH" and not sent:
            raise click.UsageError("nothing to change: name at least one option")
        if "category_id" in sent:
            sent["category_id"] = find_category(client, sent["category_id"])
        ids = [find_category(client, each, "ID") for each in ids]
        method = attrgetter(self._method)(client)
        if self._is_list:
            self._list(partial(method, *ids, **sent), as_json=as_json, **values)
            return
        response = method.raw(*ids, **sent)
        if self.operation.success.content is not None:
            self._print(response.json(), as_json=as_json)
            return
        done = {"unban": "unbanned"}.get(str(self.name), f"{self.name}d")
        if as_json:
            print_json({"id": ids[-1], done: True})
        else:
            named = self.operation.parameters[0].removesuffix("Id").capitalize()
            click.echo(f"{named} {ids[-1]} {done}.", err=True)

    def _list(
        self, listed: Callable[..., "Listed[Any]"], *, as_json: bool, as_csv: bool, **asked: Any
    ) -> None:
        if as_json and as_csv:
            raise click.UsageError("--json and --csv cannot be used together")
        rows, has_more = _read(listed, **asked)
        if as_json:
            print_json(rows)
        elif as_csv:
            (item,) = get_args(self.operation.success.content)
            print_csv(item.__struct_encode_fields__, rows)
        else:
            print_table(rows, self._columns)
        if has_more:
            click.echo("(there are more: see --all and --limit)", err=True)

    def _print(self, document: Any, *, as_json: bool) -> None:
        if isinstance(document, list):  # a pet comes in a list of one
            (document,) = document
        if self._secret is not None:
            print_secret(self._secret, document, as_json=as_json)
        elif as_json:
            print_json(document)
        else:
            print_resource(document, self._columns)


def _list_options(command: Command) -> Command:
    limit = click.option(
        "--limit",
        type=Integer(1, MAX_PAGE),
        help=f"Maximum number of results. [default: {_DEFAULT_LIMIT}]",
    )
    is_all = click.option("--all", "is_all", is_flag=True, help="Fetch all pages.")
    as_csv = click.option(
        "--csv", "as_csv", is_flag=True, help="Print CSV that is safe in a spreadsheet."
    )
    return limit(is_all(as_csv(command)))


def _read(
    listed: Callable[..., "Listed[Any]"], *, limit: int | None, is_all: bool
) -> tuple[list[dict[str, Any]], bool]:
    """Return the rows that are wanted, and whether there are more."""
    if is_all and limit is not None:
        raise click.UsageError("--limit and --all cannot be used together")
    rows: list[dict[str, Any]] = []
    size = MAX_PAGE if is_all else limit or _DEFAULT_LIMIT
    for page in listed(limit=size).pages():  # a page may be short, even empty, and not the last
        rows += page.response.json()
        if len(rows) >= size and not is_all:
            return rows[:size], page.cursor is not None or len(rows) > size
    return rows, False


def find_category(client: "Client", value: int | str, option: str = "--category") -> int:
    if isinstance(value, int):
        return value
    found = client.categories.list(name=value[:MAX_SEARCHED], limit=1) if value else iter(())
    category = next(found, None)
    if category is None or name_key(category.name) != name_key(value):
        raise CommandFailure(f"{option}: there is no category {value!r}", ExitStatus.NOT_FOUND)
    return category.id


def _fields(struct: type, *, is_change: bool) -> dict[str, OperationField]:
    _, schemas = msgspec.json.schema_components([struct])
    schema = schemas[struct.__name__]
    required = schema.get("required", ())
    found = {}
    for name, member in schema["properties"].items():
        options = member.get("anyOf", [member])
        (value,) = (each for each in options if each.get("type") != "null")
        field = _python_name(name)
        # A category is named, not the id of one; and one type at a time.
        is_several = value.get("type") == "array"
        word = re.sub("_(id|seconds|)$", "", field).replace("_", "-")
        word = _WORDS.get(field) or (word.removesuffix("s") if is_several else word)
        can_be_empty = len(options) > 1 or (is_several and "minItems" not in value)
        found[name] = OperationField(
            field, word, member | value, name in required, is_change and can_be_empty
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
