"""The settings of a Sphinx project, as far as they can be known without running `conf.py`.

It is parsed and never executed: only values that are written in it are known, as literals or put together of them.
"""

import ast
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

MAX_CONFIGURATION: Final = 1_000_000  # bytes of conf.py, and characters of a value
_SETTINGS = re.compile(
    "rst_prolog|rst_epilog|extlinks|default_role|primary_domain|highlight_language|master_doc|root_doc|version|release|"
    "project|extensions|add_module_names|exclude_patterns|autosectionlabel_prefix_document|todo_include_todos|"
    "numfig|numfig_format|numfig_secnum_depth"
)


def configuration(folder: Path) -> dict[str, Any]:
    """The settings in `conf.py`, which may lie a little above the pages, as far as they can be known without running
    it."""
    for place in (folder, *folder.absolute().parents[:2]):
        if not (place / "conf.py").is_file():
            continue
        try:
            with (place / "conf.py").open("rb") as file:
                tree = ast.parse(file.read(MAX_CONFIGURATION))
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            return {}
        return {name: value for name, value in _assigned(tree.body).items() if _SETTINGS.fullmatch(name)}
    return {}


def _assigned(body: Iterable[ast.stmt]) -> dict[str, Any]:
    """The names to which values are assigned that are written in the file itself."""
    known: dict[str, Any] = {}
    for statement in body:
        if isinstance(statement, ast.Assign):
            names = [target.id for target in statement.targets if isinstance(target, ast.Name)]
        elif isinstance(statement, ast.AugAssign | ast.AnnAssign) and isinstance(statement.target, ast.Name):
            names = [statement.target.id]
        else:
            continue
        for name in names if statement.value is not None else ():
            try:
                value = _value(statement.value, known)
                known[name] = _sum(known[name], value) if isinstance(statement, ast.AugAssign) else value
            except (ValueError, TypeError, LookupError, RecursionError):
                if not isinstance(statement, ast.AugAssign):
                    known.pop(name, None)
    return known


def _value(node: ast.expr | None, known: Mapping[str, Any]) -> Any:  # noqa: PLR0911 - one line a kind
    """The value of an expression of literals, names of known values, sums and entries. Raises ValueError for others."""
    match node:
        case ast.Constant():
            return node.value
        case ast.Name():
            return known[node.id]
        case ast.List() | ast.Tuple() | ast.Set():
            return tuple(_value(one, known) for one in node.elts)
        case ast.Dict():
            return {_value(key, known): _value(value, known) for key, value in zip(node.keys, node.values, strict=True)}
        case ast.BinOp(op=ast.Add()):
            return _sum(_value(node.left, known), _value(node.right, known))
        case ast.Subscript():
            return _value(node.value, known)[_value(node.slice, known)]
        case ast.JoinedStr():
            parts = (one.value if isinstance(one, ast.FormattedValue) else one for one in node.values)
            return "".join(str(_value(one, known)) for one in parts)[:MAX_CONFIGURATION]
    raise ValueError("only known when it is run")


def _sum(one: Any, other: Any) -> Any:
    texts = isinstance(one, str) and isinstance(other, str)
    if (texts or (isinstance(one, tuple) and isinstance(other, tuple))) and len(one) + len(other) <= MAX_CONFIGURATION:
        return one + other
    raise ValueError("no sum of texts or lists")
