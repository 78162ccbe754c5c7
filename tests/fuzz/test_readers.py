"""Damaged and hostile documents are either read or refused with a reason, in bounded time.

Any other exception of a reader would end the whole ingest because of one file.
"""

import time
from collections.abc import Callable
from typing import get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chapterverse.ingestion.chunking import cut
from chapterverse.ingestion.composing import compose
from chapterverse.ingestion.document import Document, Format, NothingToRead, Unreadable
from chapterverse.ingestion.formats import BuiltInFormat
from chapterverse.ingestion.readers import read
from tests.ingestion.readers import test_docx, test_epub, test_pdf

MARKDOWN = """---
title: Nodes
sidebar_position: 2
---
import Tabs from '@theme/Tabs';

# Nodes {#nodes}

A node does **one** job, see [topics](topics.md) and `ros2 run`.[^1]

:::note Careful
Two nodes share no memory.
:::

| name | value |
|------|-------|
| a    | 1     |

1. first
   - inner
2. second

```bash title="run"
ros2 run a b
```

<details><summary>More</summary>Hidden <b>text</b>.</details>

[^1]: A footnote.
"""
RST = """Nodes
=====

.. note:: Two nodes share no memory.

.. code-block:: bash

   ros2 run a b

A :term:`node` does *one* job, see :doc:`topics` and ``ros2``. [1]_

+------+-------+
| name | value |
+======+=======+
| a    | 1     |
+------+-------+

.. [1] A footnote.
"""
ASCIIDOC = """= Nodes
:toc:

[NOTE]
====
Two nodes share no memory.
====

A *node* does _one_ job, see <<topics>> and `ros2`.

[source,bash]
----
ros2 run a b
----

|===
|name |value
|a |1
|===
"""
HTML = """<!doctype html><html><head><title>Nodes</title></head><body><nav><a href="/">Home</a></nav>
<main><h1 id="n">Nodes</h1><p>A node does <b>one</b> job.</p><pre><code class="language-bash">ros2 run a b</code></pre>
<table><tr><th>name</th></tr><tr><td>a</td></tr></table><ul><li>x<ul><li>y</li></ul></li></ul></main></body></html>"""
SOUND: dict[Format, bytes] = {
    "markdown": MARKDOWN.encode(),
    "mdx": MARKDOWN.encode(),
    "rst": RST.encode(),
    "asciidoc": ASCIIDOC.encode(),
    "html": HTML.encode(),
    "text": b"Nodes\n\nA node does one job.\n\nAnother paragraph.",
    "epub": test_epub.archive(test_epub.FILES),
    "pdf": test_pdf.write_pdf([["A node does one job."], ["Two nodes share no memory."]], {"Nodes": 1}),
    "notebook": b'{"cells": [{"cell_type": "markdown", "source": ["# Nodes\\n", "One job."], "metadata": {}}, '
    b'{"cell_type": "code", "source": "run()", "outputs": [{"text": "ok"}], "metadata": {}}], "metadata": {}}',
    "docx": test_docx.SOUND,
}
# Tokens that start a construct in one of the formats, or are otherwise difficult.
NASTY = (
    *(
        "[",
        "](",
        "*",
        "**_",
        "`",
        "```\n",
        "~~~\n",
        "> ",
        "- ",
        "1. ",
        "|",
        "|-|\n",
        "<div>",
        "<!--",
        "<![CDATA[",
        "</p>",
    ),
    *("<details>", ":::note\n", "{", "${", "export const a = {", "[^1]: ", "![](", "\\", "&", "&#x110000;", "&#0;"),
    *("====\n", "----\n", "|===\n", "<<", "{{", "include::x[]\n", ".. note::\n   ", ":a:`", "|a|", "__ ", "*   ", "\t"),
    *(
        "\x00",
        "\ufeff",
        "\u202e",
        "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"),
        "\u0300",
        "\r",
        "\x0b",
    ),
    *("---\n", "title: [", "a: &a [*a", "!!python/object:os.system x", "9" * 400, "a" * 3000, "\n\n", " " * 80),
)
FORMATS = get_args(BuiltInFormat)


def words(text: str) -> int:
    return len(text.split())


def take(kind: Format, data: bytes) -> None:
    """Reads a document and cuts it into chunks, as the pipeline does."""
    document = Document(f"https://book.example/a.{kind}", f"a.{kind}", "book", kind, data)
    try:
        drafts = read(document)
    except (Unreadable, NothingToRead) as reason:
        assert str(reason)
        return
    for draft in drafts:
        page = compose(document, draft)
        for chunk in cut(page, words, 100):
            assert page.text[chunk.start : chunk.end] == chunk.text != ""


@st.composite
def damaged(draw: st.DrawFn) -> tuple[Format, bytes]:
    """A valid document with parts removed, repeated or overwritten, or with hostile tokens inserted."""
    kind = draw(st.sampled_from(FORMATS))
    data = SOUND[kind]
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 60)))
        put = draw(st.sampled_from(NASTY)).encode() * draw(st.sampled_from((1, 2, 30)))
        change: Callable[[], bytes] = draw(
            st.sampled_from(
                (
                    lambda: data[:start] + data[end:],  # noqa: B023 - called at once
                    lambda: data[:end] + data[start:],  # noqa: B023
                    lambda: data[:start] + put + data[end:],  # noqa: B023
                    lambda: data[:start] + bytes(255 - byte for byte in data[start:end]) + data[end:],  # noqa: B023
                )
            )
        )
        data = change()
    return kind, data


@pytest.mark.slow
@settings(max_examples=400, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(damaged())
def test_damaged_documents_are_read_or_refused(document: tuple[Format, bytes]) -> None:
    take(*document)


@settings(max_examples=200, derandomize=True, deadline=None)
@given(st.sampled_from(FORMATS), st.binary(max_size=400))
def test_random_bytes_are_read_or_refused(kind: Format, data: bytes) -> None:
    take(kind, data)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in FORMATS if kind not in ("epub", "pdf")])
def test_time_for_a_repeated_token_does_not_grow_quadratically(kind: Format) -> None:
    """Ten times the text may take thirty times as long, not a hundred."""
    for token in NASTY:
        few, many = (_seconds(kind, (token * 6_000)[:size]) for size in (2_000, 20_000))
        assert many < max(30 * few, 2.0), f"{token!r}: {few:.3f} s, then {many:.3f} s"


def _seconds(kind: Format, text: str) -> float:
    start = time.process_time()
    take(kind, text.encode())
    return time.process_time() - start
