"""Reads the settings of a Sphinx project from `conf.py` without running it.

The file is parsed, never executed: only literals and simple expressions of them are evaluated.
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
    """The settings in `conf.py`, which may be in a folder above the pages."""
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
    """The values that these statements assign to names, without values that are only known at run time."""
    values: dict[str, Any] = {}
    for statement in body:
        if isinstance(statement, ast.Assign):
            names = [target.id for target in statement.targets if isinstance(target, ast.Name)]
        elif isinstance(statement, ast.AugAssign | ast.AnnAssign) and isinstance(statement.target, ast.Name):
            names = [statement.target.id]
        else:
            continue
        for name in names if statement.value is not None else ():
            try:
                value = _value(statement.value, values)
                values[name] = _sum(values[name], value) if isinstance(statement, ast.AugAssign) else value
            except (ValueError, TypeError, LookupError, RecursionError):
                if not isinstance(statement, ast.AugAssign):
                    values.pop(name, None)
    return values


def _value(node: ast.expr | None, values: Mapping[str, Any]) -> Any:  # noqa: PLR0911 - one line a kind
    """The value of an expression of literals, known names, sums and subscripts. Raises ValueError for others."""
    match node:
        case ast.Constant():
            return node.value
        case ast.Name():
            return values[node.id]
        case ast.List() | ast.Tuple() | ast.Set():
            return tuple(_value(element, values) for element in node.elts)
        case ast.Dict():
            return {
                _value(key, values): _value(value, values) for key, value in zip(node.keys, node.values, strict=True)
            }
        case ast.BinOp(op=ast.Add()):
            return _sum(_value(node.left, values), _value(node.right, values))
        case ast.Subscript():
            return _value(node.value, values)[_value(node.slice, values)]
        case ast.JoinedStr():
            parts = (part.value if isinstance(part, ast.FormattedValue) else part for part in node.values)
            return "".join(str(_value(part, values)) for part in parts)[:MAX_CONFIGURATION]
    raise ValueError("the value is only known at run time")


def _sum(left: Any, right: Any) -> Any:
    texts = isinstance(left, str) and isinstance(right, str)
    if (texts or (isinstance(left, tuple) and isinstance(right, tuple))) and len(left) + len(
        right
    ) <= MAX_CONFIGURATION:
        return left + right
    raise ValueError("not a sum of texts or lists")
