"""The mutants of a module: its syntax tree with one expression or statement changed."""

import ast
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

_LOOSE = (ast.LtE, ast.GtE, ast.Eq, ast.In, ast.Is, ast.Or, ast.Add, ast.Mult, ast.BitOr)
_TIGHT = (
    ast.Lt,
    ast.Gt,
    ast.NotEq,
    ast.NotIn,
    ast.IsNot,
    ast.And,
    ast.Sub,
    ast.FloorDiv,
    ast.BitAnd,
)
_OPERATORS = dict[type[ast.AST], type[ast.AST]](zip(_LOOSE + _TIGHT, _TIGHT + _LOOSE, strict=True))
_OPERATORS |= {ast.LShift: ast.RShift, ast.Mod: ast.Mult, ast.Pow: ast.Mult}
_FUNCTIONS = {"min": "max", "max": "min", "any": "all", "all": "any"}
_REMOVABLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Raise, ast.Delete)
_FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
_PROSE = ("description", "extra_json_schema", "strict")
_MAX_SHOWN = 120

_Field: TypeAlias = tuple[ast.AST, str, int | None]
"""Where a node stands: in a field of its parent, at an index if the field is a list."""


class Mutant(NamedTuple):
    """One change to a module."""

    line: int
    name: str
    field: _Field
    replacement: ast.AST

    def apply(self) -> None:
        """Change the tree that the mutant was made of."""
        _put(self.field, self.replacement)


def mutants_of(module: ast.Module) -> list[Mutant]:
    """Return the mutants of a module. A name stays the same when other functions change."""
    found, seen = [], Counter[str]()
    for mutant in _mutants(module, "module", is_type=False):
        seen[mutant.name] += 1
        again = f" (#{seen[mutant.name]})" if seen[mutant.name] > 1 else ""
        found.append(mutant._replace(name=mutant.name + again))
    return found


def _mutants(node: ast.AST, scope: str, *, is_type: bool) -> Iterator[Mutant]:
    if isinstance(node, (ast.ClassDef, *_FUNCTION)):
        scope = f"{scope}.{node.name}".removeprefix("module.")
    for name, value in ast.iter_fields(node):
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(child, ast.AST) or _is_left_out(node, name, child):
                continue
            field = (node, name, index)
            # mypy checks the types, but not the constraints in them.
            in_type = (is_type or _is_type(node, name)) and not _is_call(child, "Meta")
            for replacement in () if in_type else _replacements(field, child):
                shown = f"{scope}: {_shown(field, child, replacement)}"
                line: int = getattr(child, "lineno", getattr(node, "lineno", 0))
                yield Mutant(line, shown, field, replacement)
            yield from _mutants(child, scope, is_type=in_type)


def _put(field: _Field, child: ast.AST) -> None:
    node, name, index = field
    if index is None:
        setattr(node, name, child)
    else:
        getattr(node, name)[index] = child


def _is_left_out(node: ast.AST, name: str, child: ast.AST) -> bool:
    is_docstring = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
    is_prose = isinstance(child, ast.keyword) and child.arg in _PROSE
    is_option = name == "decorator_list" or (isinstance(node, ast.ClassDef) and name == "keywords")
    return is_docstring or is_prose or is_option or isinstance(child, ast.Assert)


def _is_type(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias":
        return True
    is_generic = name == "slice" and ast.unparse(node).startswith(("Annotated[", "Literal["))
    return is_generic or name in ("annotation", "returns")


def _is_call(node: ast.AST, function: str) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func).endswith(function)


def _replacements(field: _Field, child: ast.AST) -> Iterator[ast.AST]:  # noqa: C901, PLR0912 - its cases
    """Yield what may stand in the place of ``child``."""
    node, name, _ = field
    if isinstance(child, _REMOVABLE) and not isinstance(node, (ast.Module, ast.ClassDef)):
        yield ast.Pass()
    if name in ("test", "ifs"):
        yield ast.Constant(value=False)
        if not isinstance(node, ast.While):
            yield ast.Constant(value=True)
    match child:
        case ast.Constant(value=bool(value)):
            yield ast.Constant(value=not value)
        case ast.Constant(value=int(value) | float(value)):
            yield ast.Constant(value=value + 1)
        case ast.Constant(value=str(value)) if not isinstance(node, ast.JoinedStr):
            yield ast.Constant(value="x" if _is_call(node, "strip") else "x" + value)
        case ast.Constant(value=bytes(value)):
            yield ast.Constant(value=b"x" if _is_call(node, "strip") else b"x" + value)
        case ast.JoinedStr(values=values):
            yield ast.JoinedStr(values=[ast.Constant(value="x"), *values])
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield operand
        case ast.Return(value=ast.expr() as value) if ast.unparse(value) != "None":
            yield ast.Return(value=None)
        case ast.Slice(lower=lower, upper=upper):
            if lower is not None:
                yield ast.Slice(lower=None, upper=upper)
            if upper is not None:
                yield ast.Slice(lower=lower, upper=None)
        case ast.Name(id=function) if function in _FUNCTIONS and name == "func":
            yield ast.Name(id=_FUNCTIONS[function], ctx=ast.Load())
        case _ if type(child) in _OPERATORS:
            yield _OPERATORS[type(child)]()


def _shown(field: _Field, child: ast.AST, replacement: ast.AST) -> str:
    """Return the source before and after, with what stands around it if that is short."""
    node, texts = field[0], []
    is_small = isinstance(node, (ast.expr, ast.keyword, ast.AugAssign))
    is_small = is_small and len(ast.unparse(node)) <= _MAX_SHOWN
    for one in (child, replacement):
        _put(field, one)
        text = ast.unparse(node if is_small else one) or type(one).__name__
        texts.append(" ".join(text.split())[:_MAX_SHOWN])
    _put(field, child)
    return " → ".join(texts)
