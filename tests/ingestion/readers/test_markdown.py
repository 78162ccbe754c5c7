import time
from contextlib import suppress
from typing import Any

import pytest

from chapterverse.ingestion.document import Document, Draft, Format, NothingToRead, Part, Tree, Unreadable
from chapterverse.ingestion.inline import extract, plain, styled
from chapterverse.ingestion.readers import read


def _draft(text: str, format_: Format = "markdown", **more: Any) -> Draft:
    (draft,) = read(Document("https://b.test/x", "x.md", "book", format_, text.encode(), **more))
    return draft


def _parts(text: str, format_: Format = "markdown", **more: Any) -> list[tuple[str, str]]:
    return [(part.kind, plain(part.text)) for part in _draft(text, format_, **more).parts]


def _marks(text: str, format_: Format = "markdown", **more: Any) -> list[tuple[str, str, str]]:
    """Kind, text and target of every mark of the first part; for an image the alternative text."""
    said, found = extract(_draft(text, format_, **more).parts[0].text)
    return [(mark.kind, said[mark.start : mark.end] or mark.title, mark.target) for mark in found]


def test_inline_markup_becomes_marks_and_code_stays() -> None:
    text = "Some **bold** _it_ [link](http://x) ![alt *text*](y.png) `a|b` ~~old~~ <https://u.test> a\\*b\nnext line"
    assert _parts(text) == [("paragraph", "Some bold it link `a|b` old https://u.test a*b next line")]
    assert _marks(text) == [
        ("strong", "bold", ""),
        ("emphasis", "it", ""),
        ("link", "link", "http://x"),
        ("image", "alt text", "y.png"),
        ("link", "https://u.test", "https://u.test"),
    ]


def test_powers_are_written_with_a_caret() -> None:
    text = "2<sup>80</sup>, x<sup>n</sup>, the 1<sup>st</sup> and H<sub>2</sub>O"
    assert _parts(text) == [("paragraph", "2^80, x^n, the 1st and H2O")]
    assert _marks(text) == [("sup", "^80", ""), ("sup", "^n", ""), ("sup", "st", ""), ("sub", "2", "")]


def test_task_lists_have_check_boxes() -> None:
    assert _parts("- [x] done\n- [ ] open\n- [a] link\n\n[x] no task") == [
        ("list", "- ☑ done\n- ☐ open\n- [a] link"),
        ("paragraph", "[x] no task"),
    ]


def test_python_markdown_extensions() -> None:
    text = (
        "Press ++ctrl+c++ in HTML.\n\n*[HTML]: Hyper Text\n\n"
        '<figure markdown="span">\n  ![An arm](a.png){ width="300" }\n  <figcaption>The arm</figcaption>\n</figure>\n\n'
        "```html\n<div markdown>\n  *x*\n</div>\n```\n\n"
        "/// details | More\n    type: warning\n    open: True\n\nWords.\n///\n\n- item\n\n        x = 1\n"
    )
    parts = _draft(text, anchors="mkdocs").parts
    assert [(part.kind, plain(part.text), plain(part.caption)) for part in parts] == [
        ("paragraph", "Press Ctrl+C in HTML.", ""),
        ("image", "An arm", "The arm"),
        ("code", "<div markdown>\n  *x*\n</div>", ""),
        ("paragraph", "More:", ""),
        ("paragraph", "Words.", ""),
        ("list", "- item", ""),
        ("code", "x = 1", ""),
    ]


def test_html_tags_become_marks() -> None:
    text = (
        'H<sub>2</sub>O x<sup>2</sup> <a href="a.md">the <b>page</b></a> <kbd>Ctrl</kbd> <img src="i.png" alt="pic">.'
    )
    assert _parts(text) == [("paragraph", "H2O x^2 the page `Ctrl` .")]
    assert _marks(text) == [
        ("sub", "2", ""),
        ("sup", "^2", ""),
        ("link", "the page", "a.md"),
        ("strong", "page", ""),
        ("image", "pic", "i.png"),
    ]


@pytest.mark.parametrize("text", ["<b>a <i>b</b> c</i>", "a <b>b c", "a b</i> c", "<a href='x'>a b c"])
def test_unbalanced_tags_keep_their_text(text: str) -> None:
    assert _parts(f"x {text}") == [("paragraph", "x a b c")]


def test_image_in_its_own_paragraph_is_a_block() -> None:
    parts = _draft('before\n\n![A *drawing*](img/x.png "title"){ .big }\n\n[![](b.svg)](http://x)\n\nafter').parts
    assert parts[1:3] == (Part("image", "A drawing", info="img/x.png"), Part("image", "", info="b.svg"))
    figure = '<figure>\n<img src="x.png" alt="alt">\n<figcaption>Said <b>below</b></figcaption>\n</figure>\n\nx'
    assert _draft(figure).parts[0].kind == "image"
    assert plain(_draft(figure).parts[0].caption) == "Said below"


def test_headings_with_levels_and_explicit_ids() -> None:
    parts = _draft("Big\n===\n\n## The `run` *way* {#my-id}\n\ntext").parts
    assert parts == (
        Part("heading", "Big", level=1),
        Part("heading", f"The {styled('code', 'run')} {styled('emphasis', 'way')}", level=2, anchor="my-id"),
        Part("paragraph", "text"),
    )


def test_code_keeps_language_and_shape() -> None:
    parts = _draft('```python title="x.py"\nif a:\n\n    b\n```\n\ntext\n\n    indented\n').parts
    assert parts[0] == Part("code", "if a:\n\n    b", info="python", caption="x.py")
    assert parts[2] == Part("code", "indented")


def test_lists_nest_and_continue_after_code() -> None:
    text = "1. one\n   - a\n   - b\n2. two\n\n   ```sh\n   ls\n   ```\n\n   after\n3. three\n\n- [x] done"
    assert _parts(text) == [
        ("list", "1. one\n  - a\n  - b\n2. two"),
        ("code", "ls"),
        ("paragraph", "after"),
        ("list", "3. three"),
        ("list", "- ☑ done"),
    ]


def test_tables_with_pipes_in_cells() -> None:
    assert _parts("a | b\n--|--\n`x\\|y` | **z**") == [("table", "| a | b |\n| --- | --- |\n| `x\\|y` | z |")]


@pytest.mark.parametrize(
    "text",
    [
        ":::note\nBe *careful*.\n:::",
        "::: note\n\nBe careful.\n\n:::",
        "!!! note\n    Be careful.",
        "??? note\n\n    Be careful.\n",
        "> [!NOTE]\n> Be careful.",
        "{{< note >}}\nBe careful.\n{{< /note >}}",
        "{{< note >}}Be careful.{{< /note >}}",
        "```{note}\nBe careful.\n```",
        ":::{note}\n:class: big\nBe careful.\n:::",
    ],
)
def test_admonitions_of_every_dialect(text: str) -> None:
    assert _parts(f"before\n\n{text}\n\nafter") == [
        ("paragraph", "before"),
        ("admonition", "Note: Be careful."),
        ("paragraph", "after"),
    ]


@pytest.mark.parametrize(
    "text", [":::tip[Save time]\nDo it.\n:::", ":::tip Save time\nDo it.\n:::", '!!! tip "Save time"\n    Do it.']
)
def test_title_of_an_admonition_is_its_label(text: str) -> None:
    assert (_draft(text).parts[0].info, _draft(text).parts[0].caption) == ("tip", "Save time")
    assert _parts(text) == [("admonition", "Save time: Do it.")]


def test_admonition_in_a_list_and_code_in_an_admonition() -> None:
    text = "1. one\n\n   :::warning\n   Stop.\n   ```sh\n   x\n   ```\n   Go.\n   :::\n2. two"
    assert _parts(text) == [
        ("list", "1. one"),
        ("admonition", "Warning: Stop."),
        ("code", "x"),
        ("paragraph", "Go."),
        ("list", "2. two"),
    ]


def test_nested_mkdocs_blocks_and_tabs_lose_their_indent() -> None:
    text = '=== "Linux"\n\n    !!! note\n        Read.\n\n        ```sh\n        ls\n        ```\n\n    then\n\nend'
    assert _parts(text) == [
        ("paragraph", "Linux:"),
        ("admonition", "Note: Read."),
        ("code", "ls"),
        ("paragraph", "then"),
        ("paragraph", "end"),
    ]


def test_quotes_and_headings_in_them() -> None:
    assert _parts("> ### Aside\n>\n> Said.\n\nafter") == [("quote", "Aside\n\nSaid."), ("paragraph", "after")]


@pytest.mark.parametrize("format_", ["markdown", "mdx"])
@pytest.mark.parametrize("fence", ["```", "~~~~"])
def test_dialect_markup_in_code_is_unchanged(format_: Format, fence: str) -> None:
    code = ':::note\n!!! note "x"\n{{< note >}}\n(label)=\n<Tabs>{x}\nimport a from "b"'
    assert _parts(f"- item\n\n{fence}\n{code}\n{fence}\n\n:::tip\nx\n:::", format_) == [
        ("list", "- item"),
        ("code", code),
        ("admonition", "Tip: x"),
    ]


# Front matter


@pytest.mark.parametrize(
    "matter",
    [
        "---\ntitle: 'My  Page'\nslug: my-page\n---\n",
        "+++\ntitle = 'My Page'\nslug = 'my-page'\n+++\n",
    ],
)
def test_front_matter_gives_title_and_slug(matter: str) -> None:
    draft = _draft(f"{matter}\n# Heading\n\ntext", tree=Tree("", generator="hugo"))
    assert (draft.title, draft.slug) == ("My Page", "my-page")
    assert draft.parts[0].text == "Heading"


def test_draft_and_empty_page_have_nothing_to_read() -> None:
    with pytest.raises(NothingToRead, match="draft"):
        _draft("---\ndraft: true\n---\ntext")
    with pytest.raises(NothingToRead, match="no text"):
        _draft("---\ntitle: x\n---\n\n# Only a heading\n")


def test_broken_front_matter_is_ignored() -> None:
    assert _parts("---\ntitle: [x\ndate: 2020-99-99\n---\ntext") == [("paragraph", "text")]
    assert _parts("---\ndate: 2020-99-99\n---\ntext") == [("paragraph", "text")]
    assert [text for _, text in _parts("---\n\nA rule, then *text*.\n\n---\n\nmore")] == ["A rule, then text.", "more"]


# HTML


def test_html_text_is_read_without_hidden_text() -> None:
    text = (
        'A<b>B</b> <span style="display: none">secret</span>C<br>D <!-- secret --> <img alt="pic" src="x">\n\n'
        "<details><summary>More</summary>\n\n*inside*\n\n</details>\n\n"
        "<script>\nsecret()\n\nsecret()\n</script>\n\n<style>secret</style>\n\n<!-- secret\n\nsecret -->\n\n"
        "<div hidden>\n\nsecret **markdown**\n\n```\nsecret\n```\n\n</div>\n\n<div>shown &amp; <p>two</p></div>"
    )
    assert _parts(text) == [
        ("paragraph", "AB C D"),
        ("paragraph", "More"),
        ("paragraph", "inside"),
        ("paragraph", "shown &"),
        ("paragraph", "two"),
    ]


def test_html_blocks_are_read() -> None:
    text = (
        "<h2 id='top'>Head</h2>\n<ul>\n<li>one <code>x</code></li>\n<li>two</li>\n</ul>\n"
        "<pre><code>a &lt; b\n  c</code></pre>\n<table><tr><th>A</th><th>B</th></tr>"
        "<tr><td>1</td><td>\n\n*two*\n\n</td></tr></table>"
    )
    draft = _draft(text)
    assert draft.parts[0] == Part("heading", "Head", level=2, anchor="top")
    assert [(part.kind, plain(part.text)) for part in draft.parts[1:]] == [
        ("list", "- one `x`\n- two"),
        ("code", "a < b\n  c"),
        ("table", "| A | B |\n| --- | --- |\n| 1 | two |"),
    ]


def test_button_is_read_only_in_a_sentence() -> None:
    text = "<div><pre>walk()</pre><button>Copy</button></div>\n\nPress <button>OK</button> to go."
    assert _parts(text) == [("code", "walk()"), ("paragraph", "Press OK to go.")]


@pytest.mark.parametrize(
    "text",
    [
        "<button>\n\nClick me</button>\n\nMore text.",
        '<div align="center">\n<button>Try it\n\n</button></div>\n\nMore text.',
        "<div>\n  <button>Try it\n\n    </button>\n</div>\n\nMore text.",
        "<div><button>One<button>Two</button></div>\n\nMore text.",
        "<div><button>One<!-- </button> --></div>\n\nMore text.",
    ],
)
def test_button_does_not_hide_the_text_after_it(text: str) -> None:
    assert _parts(text)[-1] == ("paragraph", "More text.")


def test_preformatted_html_continues_after_a_blank_line() -> None:
    table = "<table><tr><th>A</th></tr><tr><td>1</td></tr></table>"
    assert _parts(f"<div>\n<pre>\none\n\n# two\n\n- *a*\n\n    b &lt;\n</pre>\n</div>\n\nEnd.\n\n{table}") == [
        ("code", "one\n\n# two\n\n- *a*\n\n    b <"),
        ("paragraph", "End."),
        ("table", "| A |\n| --- |\n| 1 |"),
    ]
    assert _parts(f"<div>\n<pre>\nnever closed\n\ntwo\n</div>\n\n{table}") == [
        ("code", "never closed"),
        ("paragraph", "two"),
        ("table", "| A |\n| --- |\n| 1 |"),
    ]


def test_only_attribute_lists_are_left_out_of_braces() -> None:
    text = 'Returns { } or up{job="api"} [a](b.md){: .x} `c`{.d} now.\n\nText\n{: #id }\n\nThe end {: .x}'
    shown = [("paragraph", 'Returns { } or up{job="api"} a `c` now.'), ("paragraph", "Text"), ("paragraph", "The end")]
    assert _parts(text) == shown
    assert _parts(":smile:{ .lg .middle } Set `{{ x }}`\n\n## GET /{item_id}\n\n## Two { two }", anchors="mkdocs") == [
        ("paragraph", "Set `{{ x }}`"),
        ("heading", "GET /{item_id}"),
        ("heading", "Two"),
    ]


def test_braces_in_the_strings_of_expressions_are_text() -> None:
    text = "Use {'{'}name{\"}\"} or {`a`}{'b' + 'c'}{/* it's } */} now.\n\n<p>{ok && <b>Don't {x}</b>}End.</p>"
    assert _parts(text, "mdx") == [("paragraph", "Use {name} or abc now."), ("paragraph", "End.")]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("A {on && <b>Don't</b>} and it's {x}.\n\nNext {x}.", ["A and it's .", "Next ."]),
        ("<Foo render={() => <p>It's</p>} /> and that's it.", ["and that's it."]),
        ("{on && <p>use ` here</p>}\n\nText `code` and {x}.", ["Text `code` and ."]),
        ("A { is never closed, {x} is.\n\nSee <b>it</b> {y}.", ["A { is never closed, is.", "See it ."]),
        (
            "<Code>{'### Hello \\u007Ba}' +\n '\\n'}</Code>\n\n{'*a*'} <td>{`b\\`<c>`}</td>",
            ["### Hello {a}", "*a* b`<c>"],
        ),
    ],
)
def test_expressions_end_at_their_brace(text: str, shown: list[str]) -> None:
    assert _parts(text, "mdx") == [("paragraph", words) for words in shown]


def test_many_unclosed_braces_take_linear_time() -> None:
    started = time.monotonic()
    assert _parts("{" * 50_000 + "'{`" * 20_000 + " x", "mdx")
    assert time.monotonic() - started < 5


def test_imports_and_exports_are_known_by_their_syntax() -> None:
    text = (
        "# Title\nimport Tabs, { A,\n  B } from '@theme/Tabs';\n\nOpen the editor,\nimport the plugin from the package"
        "\nexport default settings, and restart.\n\n:::note\nimport './a.css'\n\nWords.\n:::\n\nexport const b = 1"
    )
    assert _parts(text, "mdx") == [
        ("heading", "Title"),
        ("paragraph", "Open the editor, import the plugin from the package export default settings, and restart."),
        ("admonition", "Note: Words."),
    ]


def test_lists_of_attributes_at_the_end_of_a_block_are_left_out_after_an_element() -> None:
    table = "| **b** foo { .right } | h |\n|---|---|\n| a | b |"
    text = f"- **Bold** text {{ .x }}\n- `c`{{ .y }} then (1) {{ .annotate }}\n\n{table}"
    assert _parts(text, anchors="mkdocs") == [
        ("list", "- Bold text\n- `c` then (1)"),
        ("table", "| b foo | h |\n| --- | --- |\n| a | b |"),
    ]


def test_formulas_next_to_letters_are_kept() -> None:
    text = "The $n$th of $a\\{b\\}$s and $x^*y^*$s; 其中$x_1*y_1$和$x_2*y_2$是"
    assert _parts(text) == [("paragraph", text)]


def test_two_shell_variables_are_no_formula() -> None:
    text = "Set $FOO to [the value](https://x.org) and **never** $BAR, $HOME/$USER or $x+1$."
    assert _parts(text) == [("paragraph", "Set $FOO to the value and never $BAR, $HOME/$USER or $x+1$.")]
    assert _marks(text)[0] == ("link", "the value", "https://x.org")


def test_links_and_bold_text_beginning_with_a_variable_are_no_formulas() -> None:
    assert _parts("[$a](x.md) and [$b](y.md), **$c** and **$d**") == [("paragraph", "$a and $b, $c and $d")]


def test_preformatted_html_in_other_blocks_is_not_changed() -> None:
    assert _parts("1. one\n\n   <div><pre>\n   a:\n\n     b:\n\n   - c\n   </pre></div>\n\n   more\n2. two") == [
        ("list", "1. one"),
        ("code", "a:\n\n  b:\n\n- c"),
        ("paragraph", "more"),
        ("list", "2. two"),
    ]
    assert _parts("> [!NOTE]\n> <div><pre>\n> x\n>\n> > y\n> </pre></div>\n>\n> still.\n\nAfter.") == [
        ("admonition", "Note:"),
        ("code", "x\n\n> y"),
        ("paragraph", "still."),
        ("paragraph", "After."),
    ]
    assert _parts(":::note\n<div>\n<pre>\na\n\n:::tip\nx\n:::\n</pre>\n</div>\n\n`<pre>`\n:::", "mdx") == [
        ("admonition", "Note:"),
        ("code", "a\n\n:::tip\nx\n:::"),
        ("paragraph", "`<pre>`"),
    ]


def test_many_unclosed_pre_take_linear_time() -> None:
    started = time.monotonic()
    assert _parts("- <div><pre>x\n\n" * 10_000 + "<pre>a</pre>")
    assert time.monotonic() - started < 8


def test_a_value_with_the_word_hidden_hides_nothing() -> None:
    text = 'See <a href="x.md" title="Show hidden files">the flags</a>.\n\n<p data-note="a hidden field">Text.</p>'
    assert _parts(text) == [("paragraph", "See the flags."), ("paragraph", "Text.")]
    text = '<TabItem label="Show hidden files">\n\n`ls -a`\n\n</TabItem>\n\n<p hidden={false}>Shown.</p>'
    assert _parts(text, "mdx") == [
        ("paragraph", "Show hidden files:"),
        ("paragraph", "`ls -a`"),
        ("paragraph", "Shown."),
    ]
    assert _parts("Seen.\n\n<p hidden={true}>SECRET</p>\n\n<p title=x aria-hidden='true'>SECRET</p>") == [
        ("paragraph", "Seen.")
    ]


def test_hidden_text_in_an_open_button_is_not_read() -> None:
    assert "SECRET" not in str(_parts("Seen.\n\n<div><button><span hidden>\n\nSECRET\n\n</span></button></div>"))
    assert "SECRET" not in str(_parts("Seen.\n\n<button hidden>\n\nSECRET\n\n</button>"))


@pytest.mark.parametrize(
    "text",
    [
        "Arm\n: It holds.\n: It turns.\n\nLeg\n: It walks.",
        "<dl><dt>Arm</dt><dd>It holds.</dd><dd>It turns.</dd><dt>Leg<dd>It walks.</dl>",
    ],
)
def test_descriptions_of_the_same_term_are_one_field(text: str) -> None:
    assert _parts(text) == [("field", "`Arm`\nIt holds.\nIt turns."), ("field", "`Leg`\nIt walks.")]


def test_nested_html_definitions_stay_in_their_field() -> None:
    text = "<dl><dt>Arm</dt><dd>Parts:<dl><dt>Hand</dt><dd>It holds.</dd></dl>It turns.</dd><dt>Tail</dt></dl>\n\nEnd."
    assert [(part.kind, plain(part.text), part.inside) for part in _draft(text).parts] == [
        ("field", "`Arm`\nParts:", 0),
        ("field", "`Hand`\nIt holds.", 1),
        ("paragraph", "It turns.", 1),
        ("field", "`Tail`", 0),
        ("paragraph", "End.", 0),
    ]


def test_heading_ends_an_unclosed_html_table() -> None:
    assert [part.kind for part in _draft("<table><tr><td>\n\nx\n\n## Next\n\ny").parts] == [
        "table",
        "heading",
        "paragraph",
    ]


def test_invisible_characters_are_removed() -> None:
    assert _parts("ig\u200bno\u00adre \u202ethis\u202c\U000e0041") == [("paragraph", "ignore this")]


# MDX


def test_mdx_keeps_the_text_and_drops_the_code() -> None:
    text = """import Tabs from '@theme/Tabs';
import {
  a,
} from 'b';

export const x = {
  y: 1,

  z: 2,
};

# Title {#title}

<Tabs groupId="os">
  <TabItem value="npm" label="npm">

    Run **this** {props.version} now{' '}please. {/* secret */}

    ```js
    import a from 'b'; {c}
    ```

  </TabItem>
</Tabs>

<Card title="Read me" icon={<Icon name="a>b" />} />

Math $\\frac{a}{b}$ and `{code}` and <Badge>new</Badge> <span style={{display: 'none'}}>secret</span>.

<div className="x">
**inside**
</div>

import the robot model into Gazebo.

<Admonition type="danger" title="Hot">
Do not touch.
</Admonition>
"""
    parts = _draft(text, "mdx").parts
    assert parts[0] == Part("heading", "Title", level=1, anchor="title")
    assert [(part.kind, plain(part.text)) for part in parts[1:]] == [
        ("paragraph", "npm:"),
        ("paragraph", "Run this now please."),
        ("code", "import a from 'b'; {c}"),
        ("paragraph", "Read me"),
        ("paragraph", "Math $\\frac{a}{b}$ and `{code}` and new ."),
        ("paragraph", "inside"),
        ("paragraph", "import the robot model into Gazebo."),
        ("admonition", "Hot: Do not touch."),
    ]


# Hugo


def test_hugo_shortcodes() -> None:
    text = (
        '## {{% heading "whatsnext" %}}\n\nA {{< glossary_tooltip text="Pod" term_id="pod" >}} of '
        '[docs]({{< ref "/docs/x.md#y" >}}) v{{< skew currentVersion >}}.\n\n'
        '{{< feature-state for_k8s_version="v1.29" state="beta" >}}\n\n{{% code_sample file="a.yaml" %}}\n\n'
        '{{< tabs name="t" >}}\n{{% tab name="Debian" %}}\n\n```sh\napt\n```\n\n{{% /tab %}}\n{{< /tabs >}}\n\n'
        "{{< comment >}}secret{{< /comment >}}\n\n{{< highlight yaml >}}a: 1{{< /highlight >}}\n\n"
        '{{< figure src="x.png" alt="A drawing" >}}\n\n1. one\n   {{< note >}}\n   Care.\n   {{< /note >}}\n1. two'
    )
    assert _parts(text) == [
        ("heading", "What's next"),
        ("paragraph", "A Pod of docs v{currentVersion}."),
        ("paragraph", "Feature state: Kubernetes v1.29 [beta]"),
        ("paragraph", "Debian:"),
        ("code", "apt"),
        ("code", "a: 1"),
        ("image", "A drawing"),
        ("list", "1. one"),
        ("admonition", "Note: Care."),
        ("list", "2. two"),
    ]


def test_hugo_shortcodes_with_a_language_are_code() -> None:
    text = (
        "1. Run:\n\n    {{< text bash >}}\n    $ cat <<EOF > f.yaml\n      name: a*b*c\n    ---\n    EOF\n"
        '    {{< /text >}}\n\n1. See:\n\n   {{< text syntax="yaml" snip_id=x >}}\n   a: 1\n   {{< /text >}}\n\n'
        "{{< text >}}\n```\n$ a -f {{< file >}}/`b`\n{{< /text >}}\n\n"
        "{{< hint info >}}\nSome *words*.\n{{< /hint >}}\n\n"
        '{{< tab go >}}\nMore *words*.\n{{< /tab >}}\n\n{{< quote "c" >}}\nLast *words*.\n{{< /quote >}}'
    )
    assert _parts(text) == [
        ("list", "1. Run:"),
        ("code", "$ cat <<EOF > f.yaml\n  name: a*b*c\n---\nEOF"),
        ("list", "2. See:"),
        ("code", "a: 1"),
        ("code", "```\n$ a -f {file}/`b`"),
        ("admonition", "Hint: Some words."),
        ("paragraph", "go:"),
        ("paragraph", "More words."),
        ("admonition", "Quote: Last words."),
    ]


def test_hugo_shortcodes_with_a_language_and_markdown_inside() -> None:
    text = (
        "{{< if-lang python >}}\nInstall **it**.\n\n## Heading\n{{< /if-lang >}}\n\n"
        "{{< note text >}}\nSome *words*.\n{{< /note >}}\n\n{{< tabpane lang=bash >}}\n"
        '{{< tab header="Linux" >}}\napt\n{{< /tab >}}\n{{< /tabpane >}}'
    )
    assert _parts(text) == [
        ("paragraph", "Install it."),
        ("heading", "Heading"),
        ("admonition", "Note: Some words."),
        ("paragraph", "Linux:"),
        ("paragraph", "apt"),
    ]


def test_hugo_parameters_of_the_site() -> None:
    text = (
        'Rover {{< param "rover_version" >}} or {{% param lidar %}}, `{{< param "rover_version" >}}`.\n\n'
        '```sh\nget {{% param "rover_version" %}}\n```'
    )
    assert _parts(text, settings={"rover_version": "2.1"}) == [
        ("paragraph", "Rover 2.1 or {lidar}, `2.1`."),
        ("code", "get 2.1"),
    ]


def test_hugo_figure_keeps_title_and_caption() -> None:
    text = 'Look:\n\n{{< figure src="x.png" alt="An arm" title="The arm" caption="Seen from above" >}}'
    assert _draft(text).parts[1].caption == "The arm: Seen from above"


def test_hugo_cards_in_an_html_element() -> None:
    text = (
        '<div class="cards">\n{{< card\n  title="Arm"\n  description="It [grips](/grip/)."\n  link="/arm/" >}}\n\n'
        '{{< card title="Leg" link="/leg/" >}}\n</div>\n\nAfter.'
    )
    assert _parts(text) == [("paragraph", "Arm It grips."), ("paragraph", "Leg"), ("paragraph", "After.")]
    assert _marks(text) == [("link", "Arm", "/arm/"), ("link", "grips", "/grip/")]


# MyST


def test_myst_roles_targets_and_directives() -> None:
    text = (
        "(my-label)=\n## Head <a name='x'></a>\n\nSee {ref}`the guide <guide>` and {class}`~ray.data.Dataset`.\n\n"
        "```{code-block} python\n:linenos:\nx = 1\n```\n\n```{toctree}\na\nb\n```\n\n"
        "```{literalinclude} /etc/hostname\n```\n\n"
        "````{tab-item} One\n```{tip}\nInner.\n```\n````\n\n```{eval-rst}\n.. note:: From *rst*.\n```\n\n"
        "```{admonition} My title\n:class: tip\nBody.\n```"
    )
    draft = _draft(text, anchors="sphinx")
    assert draft.parts[0] == Part("heading", "Head", level=2)
    assert [(part.kind, plain(part.text)) for part in draft.parts[1:]] == [
        ("paragraph", "See the guide and `Dataset`."),
        ("code", "x = 1"),
        ("paragraph", "One:"),
        ("admonition", "Tip: Inner."),
        ("admonition", "Note: From rst."),
        ("admonition", "My title: Body."),
    ]


@pytest.mark.parametrize(
    ("text", "shown", "label"),
    [
        ('!!! note "Is `x` *so*?"\n    Yes.', "Is `x` so? Yes.", "Is `x` so?"),
        (":::{note} Mind this.\nAnd that.\n:::", "Note: Mind this.\n\nAnd that.", "Note"),
        ("```{versionadded} 2.1 At last.\n```", "Added in version 2.1: At last.", "Added in version 2.1"),
        ("```{deprecated} 3.0\nUse y.\n```", "Deprecated since version 3.0: Use y.", "Deprecated since version 3.0"),
    ],
)
def test_admonition_labels_are_part_of_the_text(text: str, shown: str, label: str) -> None:
    assert [(plain(part.text), part.caption) for part in _draft(text).parts] == [(shown, label)]


def test_formulas_are_marked_and_shell_variables_are_not() -> None:
    text = "With $n$ or $x_1$ and $$y$$ in $HOME/$USER, US$5 and $PATH."
    assert _parts(text) == [("paragraph", text)]
    assert _marks(text) == [("math", "$n$", ""), ("math", "$x_1$", ""), ("math", "$$y$$", "")]


def test_footnotes_definitions_and_math() -> None:
    text = "Claim[^1] costs $5 or $a_1 * b_2$.\n\n[^1]: Proof.\n\nTerm\n: Meaning\n\n$$\nx_1\n$$"
    assert _parts(text) == [
        ("paragraph", "Claim costs $5 or $a_1 * b_2$."),
        ("field", "`Term`\nMeaning"),
        ("paragraph", "$$ x_1 $$"),
        ("paragraph", "Proof."),
    ]


# Hostile and broken input


@pytest.mark.slow
@pytest.mark.parametrize("format_", ["markdown", "mdx"])
@pytest.mark.parametrize(
    "text",
    [
        "[" * 9_000 + "\n\nx",
        "- " * 20_000 + "x",
        ">" * 50_000 + "x",
        "{" * 200_000,
        '<a" "' * 50_000,
        "<!--" * 50_000 + "x --> y",
        "{{< a " * 50_000,
        "# Same\n\nx\n\n" * 2_000,
        ":::note\n" * 5_000 + "x",
        "```{note}\n" * 300 + "x",
        "[a][b.c] " * 20_000,
        "][" * 50_000,
        "][^" * 50_000,
        "/// note\n" * 5_000 + "x",
        '=== "x"\n' * 5_000 + "x",
        '--8<-- "x"\n' * 20_000 + "x",
        "{{#include x}}" * 20_000,
        "<<< x\n" * 20_000,
        "# x {" * 20_000,
        "# x " + "{a " * 20_000 + "}",
        "<b>" * 20_000 + "x",
        "<dt>x<dd>" * 5_000,
        "- [a](#a)\n" * 5_000,
        "|-" * 50_000,
        "```mdx-code-block\n" * 10_000,
        "http://a.b/" * 20_000,
        "<!-- x -->\n\n:   y\n" * 3_000,
        "a" * 1_000_000,
    ],
)
def test_hostile_text_is_read_in_bounded_time(text: str, format_: Format) -> None:
    start = time.process_time()
    with suppress(NothingToRead, Unreadable):
        _draft(text, format_)
    assert time.process_time() - start < 5


def test_binary_file_is_unreadable() -> None:
    for data in (b"\x89PNG\r\n\x1a\n\0\0", bytes(range(1, 32)) * 50):
        with pytest.raises(Unreadable, match="binary"):
            read(Document("https://b.test/x", "x.md", "book", "markdown", data))


@pytest.mark.parametrize(
    "data", ["Größe".encode(), b"\xef\xbb\xbf" + "Größe".encode(), "Größe".encode("utf-16"), "Größe".encode("cp1252")]
)
def test_common_encodings_are_decoded(data: bytes) -> None:
    (draft,) = read(Document("https://b.test/x", "x.md", "book", "markdown", data))
    assert draft.parts == (Part("paragraph", "Größe"),)


def test_mkdocs_uses_the_last_of_several_link_definitions() -> None:
    text = "[a]\n\n[a]: https://one.test\n\n[a]: https://two.test\n"
    assert _marks(text) == [("link", "a", "https://one.test")]
    assert _marks(text, anchors="mkdocs") == [("link", "a", "https://two.test")]


def test_vitepress_conditions_use_the_front_matter() -> None:
    text = (
        "---\nframe: Plane\n---\n\nTake off <span v-if=\"$frontmatter.frame === 'Copter'\">and hover</span>"
        "<span v-else-if=\"$frontmatter.frame === 'Plane'\">and cruise</span>.\n\n"
        "<div v-if=\"$frontmatter.frame !== 'Plane'\">\n\n## Hidden\n\n</div>\n\n"
        '<div v-if="other">\n\nKept.\n\n</div>\n'
    )
    tree = Tree("/none", generator="vitepress")
    assert _parts(text, tree=tree) == [("paragraph", "Take off and cruise."), ("paragraph", "Kept.")]
    assert ("heading", "Hidden") in _parts(text)


def test_unclosed_code_ends_with_its_tab() -> None:
    text = '=== "One"\n\n    ```\n    a\n\n=== "Two"\n\n    text\n'
    assert _parts(text, anchors="mkdocs") == [
        ("paragraph", "One:"),
        ("code", "a"),
        ("paragraph", "Two:"),
        ("paragraph", "text"),
    ]
