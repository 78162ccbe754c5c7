"""Selects the lines of a file for `include` and `literalinclude`."""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from textwrap import dedent
from typing import Any

from chapterverse.ingestion.limits import whole_number

_MAX_OBJECT = 2_000_000  # characters of a Python file in which an object is looked for


def dedented(text: str, count: int | None) -> str:
    """Remove `count` characters of indent from each line; None: the indent that all lines share."""
    if count is None:
        return dedent(text)
    return "\n".join(line[count:] if not line[:count].strip() else line.lstrip() for line in text.split("\n"))


def include_lines(lines: list[str], options: Mapping[str, Any]) -> list[str] | None:
    """The lines for `include`; None if its markers are missing."""
    first, last = _whole(options.get("start-line")), _whole(options.get("end-line"))
    text = "\n".join(lines[first:last])
    if after := options.get("start-after"):
        _, found, text = text.partition(after)
        if not found:
            return None
    if before := options.get("end-before"):
        text, found, _ = text.partition(before)
        if not found:
            return None
    return text.split("\n")


def literal_lines(text: str, options: Mapping[str, Any]) -> list[str] | None:
    """The lines for `literalinclude`, with Sphinx's order of options; None if its markers are missing."""
    lines: list[str] | None = text.expandtabs(_whole(options.get("tab-width")) or 8).split("\n")
    if lines and lines[-1] == "":
        lines.pop()
    if wanted := options.get("pyobject"):
        lines = _python_object(text, wanted)
    lines = _from_mark(lines, options)
    lines = _to_mark(lines, options)
    if lines is not None and (wanted := options.get("lines")):
        lines = [lines[number] for number in _numbers(wanted, len(lines))]
    if lines is None:
        return None
    lines = [options["prepend"], *lines] if options.get("prepend") else lines
    return [*lines, options["append"]] if options.get("append") else lines


def _from_mark(lines: list[str] | None, options: Mapping[str, Any]) -> list[str] | None:
    at, after = options.get("start-at"), options.get("start-after")
    if lines is None or not (at or after):
        return lines
    mark = str(at or after)
    place = next((number for number, line in enumerate(lines) if mark in line), None)
    return None if place is None else lines[place + (0 if at else 1) :]


def _to_mark(lines: list[str] | None, options: Mapping[str, Any]) -> list[str] | None:
    at, before = options.get("end-at"), options.get("end-before")
    if lines is None or not (at or before):
        return lines
    start, mark = 0 if at else 1 if options.get("start-at") else 0, str(at or before)
    place = next((number for number, line in enumerate(lines) if number >= start and mark in line), None)
    return None if place is None else lines[: place + (1 if at else 0)]


def _numbers(wanted: str, total: int) -> Iterator[int]:
    """The line numbers of `1-3,5,7-`, counted from 0."""
    for part in wanted.split(",")[:500]:
        first, dash, last = part.strip().partition("-")
        begin = whole_number(first or "1", total + 1)
        end = whole_number(last, total) if dash else begin
        if first + last:
            yield from range(max(begin, 1) - 1, min(end, total))


def _python_object(text: str, wanted: str) -> list[str] | None:
    """The lines of the class or function with a dotted name; None if it is not found."""
    if len(text) > _MAX_OBJECT:
        return None
    try:
        body: Sequence[ast.stmt] = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found: Any = None
    for name in wanted.split("."):
        kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        found = next((node for node in body if isinstance(node, kinds) and node.name == name), None)
        if found is None:
            return None
        body = found.body
    first = min([found.lineno, *(decorator.lineno for decorator in found.decorator_list)])
    return text.split("\n")[first - 1 : found.end_lineno]


def _whole(given: object) -> int | None:
    return int(given) if isinstance(given, str) and re.fullmatch(r"-?\d{1,9}", given) else None
