import json
from typing import Any

import pytest

from chapterverse.ingestion.document import Document, Draft, NothingToRead, Part, Unreadable
from chapterverse.ingestion.inline import plain
from chapterverse.ingestion.readers import read


def _read(notebook: object) -> Draft:
    data = notebook if isinstance(notebook, bytes) else json.dumps(notebook).encode()
    (draft,) = read(Document("b/x.ipynb", "x.ipynb", "b", "notebook", data))
    return draft


def _cell(kind: str, source: str | list[str], **more: Any) -> dict[str, Any]:
    return {"cell_type": kind, "source": source, "metadata": {}, **more}


def test_text_code_and_output_are_read() -> None:
    outputs = [
        {"output_type": "stream", "name": "stdout", "text": ["\x1b[31m3\x1b[0m\n"]},
        {"output_type": "stream", "name": "stderr", "text": ["warning\n"]},
        {"output_type": "display_data", "data": {"image/png": "xx", "text/plain": "<Figure>"}},
        {"output_type": "error", "ename": "E", "traceback": ["x"]},
    ]
    cells = [
        _cell("markdown", ["# Walk\n", "\n", "A *step*."]),
        _cell("code", "print(1 + 2)\n'```'", outputs=outputs),
        _cell("code", "secret", metadata={"tags": ["remove-cell"]}),
        _cell("raw", "raw"),
    ]
    draft = _read({"cells": cells, "metadata": {"language_info": {"name": "python"}}, "nbformat": 4})
    assert draft.parts[0] == Part("heading", "Walk", level=1)
    assert draft.parts[2:] == (Part("code", "print(1 + 2)\n'```'", info="python"), Part("code", "3"))


def test_what_a_cell_leaves_open_ends_with_it() -> None:
    cells = [
        _cell("markdown", "```python\nx = 0"),
        _cell("code", "x = 1"),
        _cell("markdown", "Seen.\n\n<!-- TODO"),
        _cell("markdown", "<div hidden>"),
        _cell("markdown", "Half \ud83d of [it](\ud83d)."),
    ]
    kinds = [(part.kind, plain(part.text)) for part in _read({"cells": cells}).parts]
    assert kinds == [("code", "x = 0"), ("code", "x = 1"), ("paragraph", "Seen."), ("paragraph", "Half of it.")]


def test_links_and_notes_are_defined_in_any_cell() -> None:
    cells = [
        _cell("markdown", "---\ntitle: Kites\n---\nSee [docs][D] and a note[^1].\n\n```\nopen"),
        _cell("markdown", "[d]: https://b.test/d\n[e]: https://b.test/e\n\n[^1]: The note.\n\n    Its end."),
        _cell("markdown", "[e]: https://b.test/own\n\nAlso [e]."),
    ]
    parts = _read({"cells": cells}).parts
    shown = [plain(part.text) for part in parts]
    assert shown == ["See docs and a note.", "open", "The note.", "Its end.", "Also e."]
    assert "https://b.test/d" in parts[0].text and "https://b.test/own" in parts[-1].text


def test_notebook_of_version_3() -> None:
    cells = [
        {"cell_type": "heading", "level": 2, "source": "Walk"},
        {"cell_type": "code", "input": "x", "outputs": []},
    ]
    assert [part.kind for part in _read({"worksheets": [{"cells": cells}], "nbformat": 3}).parts] == ["heading", "code"]


@pytest.mark.parametrize(
    "notebook", [b"{", b"[]", b'{"cells": 3}', b"[" * 100_000, {"cells": None}, {"metadata": []}, b"\x00\x01"]
)
def test_broken_notebook_is_unreadable(notebook: object) -> None:
    with pytest.raises(Unreadable):
        _read(notebook)


@pytest.mark.parametrize("cells", [[], [None, 3, {}], [_cell("markdown", "")], [{"cell_type": "code", "source": 5}]])
def test_empty_notebook_has_nothing_to_read(cells: list[Any]) -> None:
    with pytest.raises(NothingToRead):
        _read({"cells": cells, "metadata": {"language_info": {"name": ["x"]}}})
