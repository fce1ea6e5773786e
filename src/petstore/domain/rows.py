"""Rows of a database as structs: a column for each field, in the order of the fields."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Generic, TypeVar

from msgspec import UNSET, Struct, inspect
from msgspec.structs import fields

from petstore.clock import milliseconds, utc
from petstore.domain.decoding import field_types

S = TypeVar("S", bound=Struct)


class RowMapping(Generic[S]):
    """How the structs of a kind are stored: a field that is not set is NULL.

    A moment is stored in milliseconds, or with its offset if it is one of the ``texts``. Fields
    that follow from others are ``computed``, each by its SQL. ``columns`` are for a SELECT.
    """

    def __init__(
        self,
        kind: type[S],
        *,
        texts: Collection[str] = (),
        computed: Mapping[str, str] | None = None,
    ) -> None:
        self._kind = kind
        sql = computed or {}
        columns = (
            f"{sql[name]} AS {name}" if name in sql else name for name in kind.__struct_fields__
        )
        self.columns = ", ".join(columns)
        self._decoders: list[tuple[int, Callable[[Any], Any] | None]] = []
        self._encoders: dict[str, Callable[[Any], int | str]] = {}
        for place, (field, of) in enumerate(
            zip(fields(kind), field_types(kind).values(), strict=True)
        ):
            decode: Callable[[Any], Any] | None = None
            if isinstance(of, inspect.DateTimeType):
                is_text = field.name in texts
                decode = datetime.fromisoformat if is_text else utc
                self._encoders[field.name] = datetime.isoformat if is_text else milliseconds
            elif isinstance(of, inspect.BoolType):
                decode = bool
            if decode is not None or not field.required:
                self._decoders.append((place, decode))
        self._converts = any(decode for _, decode in self._decoders)

    def read(self, row: Sequence[Any]) -> S:
        if not self._converts and None not in row:
            return self._kind(*row)
        values = [*row]
        for place, decode in self._decoders:
            if (value := values[place]) is None:
                values[place] = UNSET
            elif decode is not None:
                values[place] = decode(value)
        return self._kind(*values)

    def values(self, item: Struct, names: Sequence[str]) -> list[Any]:
        values = [getattr(item, name) for name in names]
        for place, name in enumerate(names if self._converts or UNSET in values else ()):
            if values[place] is UNSET:
                values[place] = None
            elif name in self._encoders:
                values[place] = self._encoders[name](values[place])
        return values
