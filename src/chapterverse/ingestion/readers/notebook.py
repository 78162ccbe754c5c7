"""Reads Jupyter notebooks: Markdown cells, code cells, and the text output of code.

No code is run. Images, HTML and errors in the output are left out.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from chapterverse.ingestion.document import Document, Draft, NothingToRead, Part, Unreadable
from chapterverse.ingestion.readers import markdown
from chapterverse.ingestion.readers.cleaning import decode, normal
from chapterverse.ingestion.readers.page_builder import PageBuilder

_MAX_CELLS: Final = 20_000
_MAX_OUTPUT: Final = 2_000  # characters of a cell's output; longer ones are logs, and left out
_HIDDEN: Final = {"remove-cell", "remove_cell", "hide-cell", "hide_cell", "remove"}
_HIDDEN_INPUT: Final = {"remove-input", "remove_input", "hide-input", "hide_input"}
_HIDDEN_OUTPUT: Final = {"remove-output", "remove_output", "hide-output", "hide_output"}
_ESCAPES = re.compile(r"\x1b\[[0-9;]{0,20}[A-Za-z]")
_LANGUAGE = re.compile(r"[\w+#.-]{1,30}")


def read(document: Document) -> list[Draft]:
    """Read a notebook."""
    try:
        notebook = json.loads(decode(document.data))
    except (ValueError, RecursionError) as error:
        raise Unreadable("is not JSON") from error
    if not isinstance(notebook, dict):
        raise Unreadable("is not a notebook")
    cells = notebook.get("cells")
    if cells is None and isinstance(notebook.get("worksheets"), list):  # version 3
        sheets = [sheet for sheet in notebook["worksheets"] if isinstance(sheet, dict)]
        cells = [cell for sheet in sheets for cell in sheet.get("cells") or ()]
    if not isinstance(cells, list):
        raise Unreadable("is not a notebook")
    language = _language(notebook.get("metadata"))
    written = [piece for cell in cells[:_MAX_CELLS] if isinstance(cell, dict) for piece in _cell(cell, language)]
    if not written:
        raise NothingToRead("has no cells with text")
    return markdown.read_cells(replace(document, format="markdown"), written)


def _cell(cell: dict[str, Any], language: str) -> Iterator[str | Part]:
    metadata = cell.get("metadata")
    tags = metadata.get("tags") if isinstance(metadata, dict) else None
    tagged = {tag for tag in tags if isinstance(tag, str)} if isinstance(tags, list) else set()
    if tagged & _HIDDEN:
        return
    source = _joined(cell.get("source", cell.get("input")))
    kind = cell.get("cell_type")
    if kind == "markdown":
        yield source
    elif kind == "heading":  # version 3
        level = cell.get("level")
        yield f"{'#' * (level if isinstance(level, int) and 0 < level < 7 else 2)} {' '.join(source.split())}"
    elif kind == "code":
        if source.strip() and not tagged & _HIDDEN_INPUT:
            yield from _code(source, language)
        if not tagged & _HIDDEN_OUTPUT:
            yield from _outputs(cell.get("outputs"))


def _outputs(outputs: object) -> Iterator[Part]:
    for output in outputs[:100] if isinstance(outputs, list) else ():
        if not isinstance(output, dict) or output.get("name") == "stderr":
            continue
        data = output.get("data")
        text = _joined(output.get("text") or (data.get("text/plain") if isinstance(data, dict) else ""))
        rich = isinstance(data, dict) and any(str(kind).startswith(("image/", "text/html")) for kind in data)
        text = _ESCAPES.sub("", text).strip("\n")
        if text.strip() and not rich and len(text) <= _MAX_OUTPUT:
            yield from _code(text, "")


def _code(text: str, language: str) -> tuple[Part, ...]:
    page = PageBuilder()
    page.code(text, language)
    return page.finish()


def _joined(value: object) -> str:
    """The text of a value, which is a string or a list of lines."""
    if isinstance(value, list):
        value = "".join(line for line in value if isinstance(line, str))
    return normal(value.encode(errors="ignore").decode()) if isinstance(value, str) else ""  # without half characters


def _language(metadata: object) -> str:
    info = metadata.get("language_info") or metadata.get("kernelspec") if isinstance(metadata, dict) else None
    name = (info.get("language") or info.get("name")) if isinstance(info, dict) else ""
    return name.lower() if isinstance(name, str) and _LANGUAGE.fullmatch(name) else ""
