import time
from contextlib import suppress
from pathlib import Path

import pytest

from chapterverse.book import Page
from chapterverse.ingestion.composing import compose
from chapterverse.ingestion.document import Document, Draft, NothingToRead, Part, Tree, Unreadable
from chapterverse.ingestion.inline import extract, plain
from chapterverse.ingestion.readers import read
from chapterverse.ingestion.readers.asciidoc import project as asciidoc_project


def _draft(text: str) -> Draft:
    (draft,) = read(Document("https://b.test/x", "x.adoc", "book", "asciidoc", text.encode()))
    return draft


def _parts(text: str) -> list[tuple[str, str]]:
    return [(part.kind, plain(part.text)) for part in _draft(text).parts]


def _page(root: Path, path: str, alone: bool = False) -> Page:
    asciidoc_project.forget()
    tree = Tree(str(root), base="https://b.test", alone=alone)
    document = Document(f"https://b.test/{path}", path, "b", "asciidoc", (root / path).read_bytes(), tree=tree)
    (draft,) = read(document)
    return compose(document, draft)


def _links(page: Page) -> list[tuple[str, str]]:
    return [(page.text[mark.start : mark.end], mark.target) for mark in page.marks if mark.kind == "link"]


def test_title_sections_attributes_and_anchors() -> None:
    text = (
        "= The Rover\nJane Doe <jane@x.test>\nv1.0, 2024\n:product: Rover\n:old: x\n////\nno\n////\n\n"
        "The {product} and {unknown}.\n\n"
        ":old!:\n\n== Set up & *go* -- now\n\n{old}\n\n[[legs]]\n=== The `leg` *way*\n\na\n\n"
        "[#arms]\n== Arms ==\n\nb\n\n"
        "== Arms\n\nc\n\n== Hands [[hand]]\n\nd"
    )
    assert _draft(text).parts == (
        Part("heading", "The Rover", level=1),
        Part("paragraph", "The Rover and {unknown}."),
        Part("heading", "Set up & go — now", level=2, anchor="_set_up_gonow"),
        Part("paragraph", "{old}"),
        Part("heading", "The leg way", level=3, anchor="legs"),
        Part("paragraph", "a"),
        Part("heading", "Arms", level=2, anchor="arms"),
        Part("paragraph", "b"),
        Part("heading", "Arms", level=2, anchor="_arms"),
        Part("paragraph", "c"),
        Part("heading", "Hands", level=2, anchor="hand"),
        Part("paragraph", "d"),
    )


@pytest.mark.parametrize(
    ("below", "read"),
    [
        ("First line.\nSecond line.\nThird line.\n\nAfter.", ["First line. Second line. Third line.", "After."]),
        ("This text follows its title.\nIt is read.", ["This text follows its title. It is read."]),
        ("Ann Lee; Jo <jo@x.test>\n// no\n:a: 1\nText {a}.", ["Text 1."]),
        ("Ann Lee; Bo van Dyk\nv1.0, 2024\n:a: 1\nText {a}.", ["Text 1."]),
        ("Ann Lee\nThis is version 2 of the book.", ["This is version 2 of the book."]),
        ("Professor Ann Mary Lee <ann@x.test>\nDecember 2024\nText.\nMore.", ["Text. More."]),
    ],
)
def test_text_right_below_the_title_is_read(below: str, read: list[str]) -> None:
    assert _parts(f"= Title\n{below}")[1:] == [("paragraph", text) for text in read]


def test_anchors_follow_the_attributes() -> None:
    parts = _draft(":idprefix:\n:idseparator: -\n\n== One two\n\na\n\n== One two\n\nb").parts
    assert [part.anchor for part in parts if part.kind == "heading"] == ["one-two", "one-two-2"]


def test_underlined_titles_switch_to_the_old_syntax() -> None:
    text = "The Tool\n========\n\nNAME\n----\n'tool' is `a_b_c` and +mono+.\n\n----\ncode\n----"
    assert _draft(text).parts[1:] == (
        Part("heading", "NAME", level=2, anchor="_name"),
        Part("paragraph", _draft("_tool_ is `a_b_c` and `mono`.").parts[0].text),
        Part("code", "code"),
    )


def test_inline_markup() -> None:
    text = (
        "*bold* _it_ `code *x*` **un**bound https://x.test[the site^] link:a.html[here]"
        " xref:b.adoc#c[there] "
        "<<d,that>> <<e>> H~2~O 2^80^ [.big]#marked# kbd:[Ctrl+C]"
        "footnote:[aside] foo_bar_baz 2 * 3 * 4 +{raw}+ \\*no* (C) a -- b ... &amp; icon:check[] me@x.test"
    )
    assert _parts(text) == [
        (
            "paragraph",
            "bold it `code x` unbound the site here there that [e] H2O 2^80 marked Ctrl+C (aside) "
            "foo_bar_baz 2 * 3 * 4 {raw} *no* © a — b … & [check] me@x.test",
        )
    ]


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("pass:c[Map<String, List<Foo>> m] pass:v[<T>]", "Map<String, List<Foo>> m <T>"),
        ("pass:specialcharacters[<b>&</b>] pass:[<b>hi</b>]", "<b>&</b> hi"),
        (":v: 1\n\npass:a[{v}] pass:a,q[*{v}*] pass:n[*z*] pass:q,c[*<i>*] pass:m[link:a.html[b\\]]", "1 1 z <i> b"),
        ("one+++<br>+++two pass:[<b>]bold+++</b>+++", "one two bold"),
    ],
)
def test_passed_text_has_only_the_substitutions_that_it_names(text: str, read: str) -> None:
    assert _parts(text) == [("paragraph", read)]


def test_code_with_macros_keeps_its_angle_brackets() -> None:
    text = '[subs="+macros"]\n----\nMap<String> pass:c[<T>] x\n----\n\n[subs="+quotes"]\n----\n`y` *z*\n----'
    assert _parts(text) == [("code", "Map<String> <T> x"), ("code", "y z")]


def test_code_in_the_text_of_a_reference() -> None:
    text = "[[bar]]\n== B\n\n<<bar, `<tx:driven/>`>> and <<bar>>; 1<<2"
    assert _parts(text)[1:] == [("paragraph", "`<tx:driven/>` and B; 1<<2")]


def test_inline_markup_becomes_marks(tmp_path: Path) -> None:
    (tmp_path / "x.adoc").write_text("*b* _i_ x^2^ H~2~O https://x.test[site] <https://y.test> image:p.png[A plot]")
    page = _page(tmp_path, "x.adoc")
    assert [(mark.kind, page.text[mark.start : mark.end], mark.target, mark.title) for mark in page.marks] == [
        ("strong", "b", "", ""),
        ("emphasis", "i", "", ""),
        ("sup", "^2", "", ""),
        ("sub", "2", "", ""),
        ("link", "site", "https://x.test", ""),
        ("link", "https://y.test", "https://y.test", ""),
        ("image", "", "https://b.test/p.png", "A plot"),
    ]


def test_comments_hidden_html_and_conditions_are_left_out() -> None:
    text = (
        "kept\n// secret\nmore\n\n////\nsecret\n\nsecret\n////\n\ninclude::/etc/hostname[]\n\n"
        '++++\n<p hidden>secret</p><p style="display:none">secret</p>\n++++\n\nend+++<i hidden>secret</i>+++\n\n'
        "ifdef::x[]\nsecret\nendif::[]\n\ntoc::[]"
    )
    assert _parts(text) == [("paragraph", "kept more"), ("paragraph", "end")]


def test_conditions_select_their_text() -> None:
    text = (
        ":a: 1\n:v: 3\n\nifdef::a[yes]\nifndef::a[no]\nifdef::a,z[or]\nifdef::a+z[no]\n\n"
        'ifeval::["{a}" == "1"]\none\n\nifdef::z[]\nno\nendif::[]\nendif::[]\nifeval::[{v} > 10]\nno\nendif::[]\nend'
    )
    assert _parts(text) == [("paragraph", "yes or"), ("paragraph", "one"), ("paragraph", "end")]


def test_code_blocks() -> None:
    parts = _draft(
        ":v: 2\n\n.app.py\n[source,python]\n----\nif a:\n\n  b # <1>\n----\n<1> Calls.\n\n"
        "....\n== no\n....\n\n  literal\n\n"
        '```js\nx\n```\n\n[source,sh,subs="attributes+"]\n----\nrun {v}\n----\n\n[source]\n---\nkey: 1'
    ).parts
    assert parts == (
        Part("code", "if a:\n\n  b # <1>", info="python", caption="app.py"),
        Part("list", "1. Calls."),
        Part("code", "== no"),
        Part("code", "literal"),
        Part("code", "x", info="js"),
        Part("code", "run 2", info="sh"),
        Part("code", "---\nkey: 1"),
    )


def test_lists_nest_and_continue() -> None:
    text = (
        "* one\n** inner\ngoes on\n* two\n\n//-\n\n. first\n+\n[source,sh]\n----\nls\n----\n+\nafter\n. second\n\n"
        "* [x] done\n* [ ] open\n\nend"
    )
    assert _parts(text) == [
        ("list", "- one\n  - inner goes on\n- two"),
        ("list", "1. first"),
        ("code", "ls"),
        ("paragraph", "after"),
        ("list", "2. second\n  - ☑ done\n  - ☐ open"),
        ("paragraph", "end"),
    ]


def test_description_lists_are_fields() -> None:
    text = "CPU:: brain\nLeg::\n  walks\n\n--depth::\n--deep::\n  How far.\n+\nDefault: 3"
    assert _parts(text) == [
        ("field", "`CPU`\nbrain"),
        ("field", "`Leg`\nwalks"),
        ("field", "`--depth, --deep`\nHow far.\nDefault: 3"),
    ]


def test_tabs_start_with_their_name() -> None:
    text = "[tabs]\n====\nMac::\n+\n--\n[source,sh]\n----\nbrew\n----\n--\nLinux::\n+\napt\n===="
    assert _parts(text) == [("paragraph", "Mac:"), ("code", "brew"), ("paragraph", "Linux:"), ("paragraph", "apt")]


def test_admonitions_and_quotes() -> None:
    text = (
        "NOTE: Be _careful_.\n\n[WARNING]\n====\nHot.\n\n* very\n====\n\n[TIP]\nTry it.\n\n____\nSaid.\n____\n\n"
        "[quote, Ann, A Book]\nWell."
    )
    assert _parts(text) == [
        ("admonition", "Note: Be careful."),
        ("admonition", "Warning: Hot.\n\n- very"),
        ("admonition", "Tip: Try it."),
        ("quote", "Said."),
        ("quote", "Well.\n\n— Ann, A Book"),
    ]
    assert _draft(text).parts[1].info == "warning"


def test_images_are_blocks() -> None:
    text = ':imagesdir: pics\n\n.The rover\nimage::r.png["A rover, red",200]\n\nx'
    assert _draft(text).parts[0] == Part("image", "A rover, red", info="path:pics/r.png", caption="The rover")


def test_tables() -> None:
    text = (
        '.The parts\n[cols="1,2",options="header"]\n|===\n|Name |Use\n// no\n\n|a\n|first \\| other\n2+|wide\n|===\n\n'
        "|===\n|x |y\n\n|1 |2\n|===\n\n,===\nc,d\n3,4\n,===\n\n"
        "[cols=2*]\n|===\n.2+|tall |1\n|2 5.1+\n2*|z\n|===\n\n"
        '[cols="1,a"]\n|===\n|k\n|* one\n* two\n\n[source]\n----\nx\n----\n|==='
    )
    assert _parts(text) == [
        ("table", "| Name | Use |\n| --- | --- |\n| a | first \\| other |\n| wide | wide |"),
        ("table", "| x | y |\n| --- | --- |\n| 1 | 2 |"),
        ("table", "|  |  |\n| --- | --- |\n| c | d |\n| 3 | 4 |"),
        ("table", "|  |  |\n| --- | --- |\n| tall | 1 |\n| tall | 2 5.1+ |\n| z | z |"),
        ("table", "|  |  |\n| --- | --- |\n| k | one two `x` |"),
    ]


def test_cells_of_one_letter_are_text() -> None:
    text = "|===\n|Op|Meaning\n\n|<|less\n|s|seconds\n|m|minutes\n2+|all\ns|last e|cell\n|==="
    assert _parts(text) == [
        (
            "table",
            "| Op | Meaning |\n| --- | --- |\n| < | less |\n| s | seconds |\n| m | minutes |\n"
            "| all | all |\n| last | cell |",
        )
    ]


def test_cell_with_blocks_keeps_captions_and_pictures() -> None:
    text = (
        '[cols="1a,1"]\n|===\n|\n.pom.xml\n[source,xml]\n----\n<a/>\n----\n\n.A plot\nimage::p.png[Plot]\n\n'
        ".Ports\n!===\n!x !y\n!===\n|z\n|==="
    )
    (part,) = _draft(text).parts
    shown, marks = extract(part.text)
    assert shown.endswith("| pom.xml `<a/>` A plot Ports x y | z |")
    assert [(mark.kind, mark.target, mark.title) for mark in marks] == [("image", "path:p.png", "Plot")]


def test_field_of_several_lines_keeps_its_words_apart() -> None:
    text = '[format=csv]\n|===\na,"line one\nline two"\n|==='
    assert _parts(text) == [("table", "|  |  |\n| --- | --- |\n| a | line one line two |")]


def test_block_titles_and_formulas() -> None:
    text = (
        ".Mind the *gap*\n[WARNING]\n====\nHot.\n====\n\n.The parts\n|===\n|a\n|===\n\n"
        "Of stem:[n] and stem:[x^2].\n\n[stem]\n++++\na + b\n++++"
    )
    parts = _draft(text).parts
    assert [(part.kind, plain(part.text), part.info, part.caption) for part in parts] == [
        ("admonition", "Mind the gap: Hot.", "warning", "Mind the gap"),
        ("table", "|  |\n| --- |\n| a |", "", "The parts"),
        ("paragraph", "Of $n$ and $x^2$.", "", ""),
        ("paragraph", "$$a + b$$", "", ""),
    ]
    marks = [
        (mark.kind, text_of_part[mark.start : mark.end])
        for text_of_part, found in map(extract, [p.text for p in parts])
        for mark in found
    ]
    assert marks == [("strong", "gap"), ("math", "$n$"), ("math", "$x^2$"), ("math", "$$a + b$$")]


def test_includes_stay_inside_the_folder(tmp_path: Path) -> None:
    root = tmp_path / "book"
    (root / "sub").mkdir(parents=True)
    (tmp_path / "secret.adoc").write_text("secret")
    (root / "link.adoc").symlink_to(tmp_path / "secret.adoc")
    (root / "sub/code.py").write_text("# tag::a[]\na = 1\n# tag::b[]\nb = 2\n# end::b[]\n# end::a[]\nc = 3\n")
    (root / "sub/text.adoc").write_text("==== Deep\n\ninclude::../x.adoc[]\ninclude::code.py[lines=7]\n")
    (root / "x.adoc").write_text(
        "= X\n:dir: sub\n\n----\ninclude::{dir}/code.py[tag=a]\n----\n\n----\ninclude::sub/code.py[tags=a;!b]\n----\n\n"
        "include::sub/text.adoc[leveloffset=-1]\n\n== After\n\n"
        "include::../secret.adoc[]\ninclude::link.adoc[]\ninclude::https://x.test/y.adoc[]\n"
        "include::none.adoc[opts=optional]\n\nend"
    )
    page = _page(root, "x.adoc")
    assert page.text == ("# X\n\n```\na = 1\nb = 2\n```\n\n```\na = 1\n```\n\n### Deep\n\nc = 3\n\n## After\n\nend")


def test_line_numbers_of_any_length_are_read(tmp_path: Path) -> None:
    long = "9" * 5_000
    (tmp_path / "code.py").write_text("a\nb\nc\n")
    includes = (f"{long};2", f"3..{long}", f"2..-{long}", f"{long}..2;1")
    blocks = (f"----\ninclude::code.py[lines={wanted}]\n----\n\n" for wanted in includes)
    (tmp_path / "x.adoc").write_text(f"{''.join(blocks)}----\ninclude::code.py[indent={long}]\n----\n")
    page = _page(tmp_path, "x.adoc")
    code = [page.text[block.start : block.end].split("\n")[1:-1] for block in page.blocks if block.kind == "code"]
    assert code == [["b"], ["c"], ["b", "c"], ["a"], ["a", "b", "c"]]


def test_too_large_number_of_columns_is_ignored() -> None:
    assert _parts(f'[cols="{"9" * 5_000}"]\n|===\n|a\n|===') == [("table", "|  |\n| --- |\n| a |")]


def test_cross_references_show_titles(tmp_path: Path) -> None:
    (tmp_path / "a.adoc").write_text(
        "= A\n\n[[one]]\n== First _thing_\n\n<<one>>, <<two>>, xref:b.adoc[], xref:b.adoc#_far[], "
        "xref:b.adoc#_far[x], <<zz>>\n"
        "\n[#two]\n.Two titled\n----\nx\n----"
    )
    (tmp_path / "b.adoc").write_text("= The B\n\n== Far\n\n<<one>> <<First thing>> link:a.html#one[l]")
    assert _links(_page(tmp_path, "a.adoc")) == [
        ("First thing", "https://b.test/a.adoc#one"),
        ("Two titled", "https://b.test/a.adoc#two"),
        ("The B", "https://b.test/b.adoc"),
        ("Far", "https://b.test/b.adoc#_far"),
        ("x", "https://b.test/b.adoc#_far"),
    ]
    assert _links(_page(tmp_path, "b.adoc"))[0] == ("First thing", "https://b.test/a.adoc#one")


def test_single_file_is_read_with_its_includes(tmp_path: Path) -> None:
    (tmp_path / "book.adoc").write_text("= Book\n\ninclude::one.adoc[]\n\ninclude::two.adoc[]")
    (tmp_path / "one.adoc").write_text("== One\n\n1")
    (tmp_path / "two.adoc").write_text("== Two\n\n2")
    assert _page(tmp_path, "book.adoc", alone=True).text == "# Book\n\n## One\n\n1\n\n## Two\n\n2"
    with pytest.raises(NothingToRead):
        _page(tmp_path, "book.adoc")


@pytest.mark.slow
def test_nested_and_looping_includes_are_limited(tmp_path: Path) -> None:
    for number in range(12):
        (tmp_path / f"{number}.adoc").write_text("x" * 100 + f"\n\ninclude::{number + 1}.adoc[]\n\n" * 50)
    (tmp_path / "loop.adoc").write_text("a\n\ninclude::loop.adoc[]")
    start = time.process_time()
    with suppress(Unreadable):
        _page(tmp_path, "0.adoc")
    assert _page(tmp_path, "loop.adoc").text.endswith("a")
    assert time.process_time() - start < 10


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "*a " * 6_000,
        "====\n" * 20_000 + "x",
        "a" * 1_000_000,
        "[" * 19_000,
        "== Same\n\nx\n\n" * 3_000,
        "|===\n" + "|a" * 100_000,
        ":a0: xxxxxxxxxx\n" + "".join(f":a{n + 1}: {{a{n}}}{{a{n}}}\n" for n in range(60)) + "\n{a60}",
        "* a\n" * 30_000,
        "".join(f"{'*' * (n % 5 + 1)} a\n" for n in range(20_000)),
        "a::\n" * 20_000,
        "<<" * 14_000,
        "https://x[" * 2_500,
        "((" * 14_000,
        "[[a]]" * 5_000,
        "`a " * 9_000,
        "image:a[" * 3_000,
        "xref:a" * 4_000,
        "link:a b" * 3_000,
        "++a" * 9_000,
        "|===\n" + "9999*|x\n" * 3,
        "include::x[" * 10_000,
        ("a" * 90 + "@") * 300,
    ],
)
def test_hostile_text_is_read_in_bounded_time(text: str) -> None:
    start = time.process_time()
    with suppress(NothingToRead):
        _draft(text)
    assert time.process_time() - start < 5
