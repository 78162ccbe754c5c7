import time
from contextlib import suppress

import pytest

from chapterverse.ingestion.document import Document, Draft, NothingToRead, Part
from chapterverse.ingestion.readers import read


def _draft(text: str) -> Draft:
    (draft,) = read(Document("https://b.test/x", "x.adoc", "book", "asciidoc", text.encode()))
    return draft


def _parts(text: str) -> list[tuple[str, str]]:
    return [(part.kind, part.text) for part in _draft(text).parts]


def test_title_sections_attributes_and_anchors() -> None:
    text = (
        "= The Rover\nJane Doe <jane@x.test>\nv1.0, 2024\n:product: Rover\n:old: x\n\nThe {product} and {unknown}.\n\n"
        ":old!:\n\n== Setup\n\n{old}\n\n[[legs]]\n=== The `leg` *way*\n\na\n\n[#arms]\n== Arms ==\n\nb"
    )
    assert _draft(text).parts == (
        Part("heading", "The Rover", level=1),
        Part("paragraph", "The Rover and {unknown}."),
        Part("heading", "Setup", level=2),
        Part("paragraph", "{old}"),
        Part("heading", "The leg way", level=3, anchor="legs"),
        Part("paragraph", "a"),
        Part("heading", "Arms", level=2, anchor="arms"),
        Part("paragraph", "b"),
    )


def test_inline_markup() -> None:
    text = (
        "*bold* _it_ `code *x*` **un**bound https://x.test[the site^] link:a.html[here]"
        " xref:b.adoc#c[there] "
        "<<d,that>> <<e>> H~2~O x^2^ [.big]#marked# kbd:[Ctrl+C] image:i.png[icon] "
        "footnote:[aside] foo_bar_baz 2 * 3 * 4"
    )
    assert _parts(text) == [
        (
            "paragraph",
            "bold it `code *x*` unbound the site here there that e H2O x2 marked Ctrl+C icon (aside) "
            "foo_bar_baz 2 * 3 * 4",
        )
    ]


def test_what_is_not_for_readers_is_left_out() -> None:
    text = (
        "kept\n// secret\nmore\n\n////\nsecret\n\nsecret\n////\n\ninclude::/etc/hostname[]\n\n"
        "++++\n<b>secret</b>\n++++\n\nifdef::x[]\nend\nendif::[]\n\ntoc::[]"
    )
    assert _parts(text) == [("paragraph", "kept more"), ("paragraph", "end")]


def test_programs() -> None:
    parts = _draft(
        "[source,python]\n----\nif a:\n\n  b # <1>\n----\n\n....\n== no\n....\n\n  literal\n\n```js\nx\n```"
    ).parts
    assert parts == (
        Part("code", "if a:\n\n  b # <1>", language="python"),
        Part("code", "== no"),
        Part("code", "literal"),
        Part("code", "x", language="js"),
    )


def test_lists_nest_continue_and_explain() -> None:
    text = (
        "* one\n** inner\ngoes on\n* two\n\n. first\n+\n[source,sh]\n----\nls\n----\n+\nafter\n. second\n\n"
        "CPU:: brain\nLeg::\n  walks\n\nend"
    )
    assert _parts(text) == [
        ("list", "- one\n  - inner goes on\n- two\n  1. first"),
        ("code", "ls"),
        ("paragraph", "after"),
        ("list", "2. second\n  - CPU: brain\n  - Leg: walks"),
        ("paragraph", "end"),
    ]


def test_admonitions_and_quotes() -> None:
    text = "NOTE: Be _careful_.\n\n[WARNING]\n====\nHot.\n\n* very\n====\n\n[TIP]\nTry it.\n\n____\nSaid.\n____"
    assert _parts(text) == [
        ("admonition", "Note: Be careful."),
        ("admonition", "Warning: Hot.\n\n- very"),
        ("admonition", "Tip: Try it."),
        ("quote", "Said."),
    ]


def test_tables() -> None:
    text = (
        '.The parts\n[cols="1,2",options="header"]\n|===\n|Name |Use\n\n|a\n|first \\| other\n2+|wide\n|===\n\n'
        "|===\n|x |y\n|1 |2\n|===\n\n,===\nc,d\n3,4\n,==="
    )
    assert _parts(text) == [
        ("paragraph", "The parts"),
        ("table", "| Name | Use |\n| --- | --- |\n| a | first \\| other |\n| wide |  |"),
        ("table", "| x | y |\n| --- | --- |\n| 1 | 2 |"),
        ("table", "| c | d |\n| --- | --- |\n| 3 | 4 |"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "*a " * 6_000,
        "====\n" * 20_000 + "x",
        "a" * 1_000_000,
        "[" * 19_000,
        "== Same\n\nx\n\n" * 3_000,
        "|===\n" + "|a" * 100_000,
    ],
)
def test_hostile_shapes_cost_little(text: str) -> None:
    start = time.process_time()
    with suppress(NothingToRead):
        _draft(text)
    assert time.process_time() - start < 5
