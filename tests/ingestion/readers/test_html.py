"""HTML: the content of a page without its navigation, for Docusaurus, MkDocs Material and Sphinx; and hostile pages."""

import time

import pytest

from chapterverse.book import Mark
from chapterverse.ingestion.composing import compose
from chapterverse.ingestion.document import Document, Draft, NothingToRead, Unreadable
from chapterverse.ingestion.inline import extract, plain
from chapterverse.ingestion.readers import html

URL = "https://book.example/docs/nodes"


def document(page: str | bytes) -> Document:
    data = page.encode() if isinstance(page, str) else page
    return Document(URL, "docs/nodes.html", "book", "html", data)


def read(page: str | bytes) -> Draft:
    (draft,) = html.read(document(page))
    return draft


def parts_of(page: str) -> list[tuple[str, str]]:
    return [(part.kind, plain(part.text)) for part in read(page).parts]


DOCUSAURUS = """<!doctype html><html><head><title>Nodes | Robot Book</title></head><body>
<div role="region" aria-label="Skip to main content"><a class="skipToContent" href="#c">Skip to main content</a></div>
<nav class="navbar"><a href="/">Robot Book</a></nav>
<div class="main-wrapper"><aside class="theme-doc-sidebar-container"><ul><li>Sidebar</li></ul></aside>
<main><div class="container"><article>
<nav class="theme-doc-breadcrumbs"><ul><li>Module 1</li></ul></nav>
<div class="tocCollapsible theme-doc-toc-mobile"><button>On this page</button></div>
<div class="theme-doc-markdown markdown"><header><h1>Nodes</h1></header>
<p>A <strong>node</strong> uses <code>rclpy</code>, see <a href="/topics">topics</a>.</p>
<h2 class="anchor anchorWithStickyNavbar" id="first-node">First node<a href="#first-node" class="hash-link"
 aria-label="Direct link to First node">&#8203;</a></h2>
<div class="language-python codeBlockContainer theme-code-block"><div class="codeBlockTitle">talker.py</div>
<div class="codeBlockContent"><pre tabindex="0" class="prism-code language-python codeBlock"><code
 class="codeBlockLines"><span class="token-line" style="color:#393A34"><span class="token keyword">import</span
><span class="token plain"> rclpy</span><br></span><span class="token-line"><span class="token plain" style="display:
inline-block"></span><br></span><span class="token-line"><span class="token plain">    rclpy.init()</span><br></span
></code></pre><div class="buttonGroup"><button aria-label="Copy code">Copy</button></div></div></div>
<div class="theme-admonition theme-admonition-note admonition_node alert alert--secondary"><div
 class="admonitionHeading_x"><span class="admonitionIcon"><svg><path d="M6"></path></svg></span>note</div><div
 class="admonitionContent_x"><p>Spin it.</p></div></div>
<div class="theme-tabs-container tabs-container"><ul role="tablist" class="tabs"><li role="tab">Linux</li><li
 role="tab">macOS</li></ul><div class="margin-top--md"><div role="tabpanel"><p>Use apt.</p></div><div role="tabpanel"
 hidden=""><p>Use brew.</p></div></div></div>
</div><footer class="theme-doc-footer"><a class="theme-edit-this-page" href="/edit">Edit this page</a></footer>
</article><nav class="pagination-nav"><a href="/next">Next</a></nav></div></main></div>
<footer class="footer">Copyright</footer><script>var x = "secret";</script></body></html>"""

MATERIAL = """<!doctype html><html><head><title>Nodes - Robot Book</title></head><body>
<div data-md-component="skip"><a href="#nodes" class="md-skip">Skip to content</a></div>
<header class="md-header"><nav><div class="md-ellipsis">Robot Book</div></nav></header>
<div class="md-container"><main class="md-main"><div class="md-main__inner"><div class="md-sidebar"><nav>All</nav></div>
<div class="md-content"><article class="md-content__inner md-typeset">
<a href="/edit" title="Edit this page" class="md-content__button md-icon"><svg></svg></a>
<h1 id="nodes">Nodes<a class="headerlink" href="#nodes" title="Permanent link">&para;</a></h1>
<h2 id="install">Install<a class="headerlink" href="#install">&para;</a></h2>
<div class="tabbed-set tabbed-alternate"><input checked id="t1" type="radio"><input id="t2" type="radio"><div
 class="tabbed-labels"><label for="t1">Linux</label><label for="t2">Windows</label></div><div
 class="tabbed-content"><div class="tabbed-block"><p>Use apt.</p></div><div class="tabbed-block"><p>Use
 winget.</p></div></div></div>
<div class="highlight"><table class="highlighttable"><tr><td class="linenos"><div class="linenodiv"><pre><span>1</span>
<span>2</span></pre></div></td><td class="code"><div><pre><span></span><code>a = 1
b = 2
</code></pre></div></td></tr></table></div>
<div class="language-bash highlight"><pre><span></span><code><a id="__codelineno-0-1"></a>pip install x
</code></pre></div>
<div class="admonition warning"><p class="admonition-title">Take care</p><p>It moves.</p></div>
<details class="tip"><summary>More</summary><p>Hidden until opened.</p></details>
<p>Text<sup id="fnref:1"><a class="footnote-ref" href="#fn:1">1</a></sup>.</p>
</article></div></div></main><footer class="md-footer">Made with</footer></div></body></html>"""

SPHINX = """<!DOCTYPE html><html><head><title>Nodes &#8212; Robot Book 2.0 documentation</title></head><body>
<div class="related"><h3>Navigation</h3></div><div class="document"><div class="documentwrapper"><div
 class="bodywrapper"><div class="body" role="main"><section id="nodes"><span id="old-nodes"></span><h1>Nodes<a
 class="headerlink" href="#nodes">¶</a></h1><p>Intro with <code
 class="docutils literal notranslate"><span class="pre">a</span> <span class="pre">b</span></code>.</p>
<section id="running"><h2>Running<a class="headerlink" href="#running">¶</a></h2>
<div class="highlight-python notranslate"><div class="highlight"><pre><span></span><span class="gp">&gt;&gt;&gt; </span
>go()
</pre></div></div>
<div class="admonition seealso"><p class="admonition-title">See also</p><p>Topics.</p></div>
<dl class="simple"><dt>spin</dt><dd><p>Waits.</p></dd></dl>
<dl class="py function"><dt class="sig sig-object py" id="rclpy.init"><span class="sig-prename">rclpy.</span><span
 class="sig-name">init</span><span class="sig-paren">(</span><em>args</em><span class="sig-paren">)</span><a
 class="headerlink" href="#rclpy.init">¶</a></dt><dd><p>Starts it.</p></dd></dl>
</section></section></div></div></div><div class="sphinxsidebar"><h3>Table of Contents</h3></div></div></body></html>"""


def test_docusaurus_page() -> None:
    draft = read(DOCUSAURUS)
    assert draft.title == "Nodes"
    assert [(part.kind, plain(part.text)) for part in draft.parts] == [
        ("heading", "Nodes"),
        ("paragraph", "A node uses `rclpy`, see topics."),
        ("heading", "First node"),
        ("code", "import rclpy\n\n    rclpy.init()"),
        ("admonition", "Note: Spin it."),
        ("paragraph", "Linux:"),
        ("paragraph", "Use apt."),
        ("paragraph", "macOS:"),
        ("paragraph", "Use brew."),
    ]
    assert (draft.parts[2].anchor, draft.parts[2].level, draft.parts[3].info) == ("first-node", 2, "python")
    assert draft.parts[3].caption == "talker.py"


def test_mkdocs_material_page() -> None:
    draft = read(MATERIAL)
    assert [(part.kind, part.text) for part in draft.parts] == [
        ("heading", "Nodes"),
        ("heading", "Install"),
        ("paragraph", "Linux:"),
        ("paragraph", "Use apt."),
        ("paragraph", "Windows:"),
        ("paragraph", "Use winget."),
        ("code", "a = 1\nb = 2"),
        ("code", "pip install x"),
        ("admonition", "Take care: It moves."),
        ("paragraph", "More"),
        ("paragraph", "Hidden until opened."),
        ("paragraph", "Text."),
    ]
    assert (draft.parts[1].anchor, draft.parts[7].info) == ("install", "bash")


def test_sphinx_page() -> None:
    draft = read(SPHINX)
    assert [(part.kind, part.text, part.anchor) for part in draft.parts] == [
        ("heading", "Nodes", "nodes"),
        ("paragraph", "Intro with `a b`.", ""),
        ("heading", "Running", "running"),
        ("code", ">>> go()", ""),
        ("admonition", "See also: Topics.", ""),
        ("field", "`spin`\nWaits.", ""),
        ("heading", "rclpy.init", "rclpy.init"),
        ("field", "`rclpy.init(args)`\nStarts it.", ""),
    ]
    assert draft.parts[3].info == "python"


def test_lists_tables_quotes_figures() -> None:
    page = """<main><ol start="3"><li>Three<ul><li>Inner <pre><code class="language-sh">ls
cd</code></pre></li></ul></li><li><p>Four</p><p>more</p></li></ol>
<table><caption>Sizes</caption><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td colspan="2">x|y</td></tr>
<tr><td>10<sup>6</sup></td><td>1<sup>st</sup></td></tr></tbody></table>
<table role="presentation"><tr><td><p>Left.</p></td><td><p>Right.</p></td></tr></table>
<blockquote><p>One.</p><p>Two.</p></blockquote>
<figure><img src="a.png" alt="A robot"><figcaption>Figure 1</figcaption></figure>
loose <b>words</b><div>block</div></main>"""
    assert parts_of(page) == [
        ("list", "3. Three\n  - Inner"),
        ("code", "ls\ncd"),
        ("list", "4. Four\n  more"),
        ("table", "| a | b |\n| --- | --- |\n| x\\|y | x\\|y |\n| 10^6 | 1st |"),
        ("paragraph", "Left."),
        ("paragraph", "Right."),
        ("quote", "One.\n\nTwo."),
        ("image", "A robot"),
        ("paragraph", "loose words"),
        ("paragraph", "block"),
    ]


def test_formulas_and_captions() -> None:
    page = (
        '<main><p>The <span class="math">\\(x\\)</span> of <math><mi>n</mi><annotation>n^2</annotation></math>.</p>'
        '<div class="arithmatex">\\[ a + b \\]</div>'
        "<table><caption>Sizes</caption><tr><th>a</th></tr><tr><td>1</td></tr></table></main>"
    )
    parts = [(part.kind, *extract(part.text), part.caption) for part in read(page).parts]
    assert parts == [
        ("paragraph", "The $x$ of $n^2$ .", [Mark("math", 4, 7), Mark("math", 11, 16)], ""),
        ("paragraph", "$$a + b$$", [Mark("math", 0, 9)], ""),
        ("table", "| a |\n| --- |\n| 1 |", [], "Sizes"),
    ]


@pytest.mark.parametrize(
    "hidden",
    [
        "<p hidden>SECRET</p>",
        '<p style="color:red; display : NONE">SECRET</p>',
        '<p style="visibility:hidden">SECRET</p>',
        '<p style="font-size:0px">SECRET</p>',
        '<span style="opacity: 0.0">SECRET</span>',
        '<p style="position:absolute;left:-9999px">SECRET</p>',
        '<p class="ghost x">SECRET</p>',
        '<p id="gone">SECRET</p>',
        '<p aria-hidden="true">SECRET</p>',
        "<!-- SECRET -->",
        "<template><p>SECRET</p></template>",
        "<noscript>SECRET</noscript>",
        "<script>SECRET</script>",
        '<div style="display:none"><div style="display:none"><nav>SECRET</nav></div></div>',
        "<nav><aside><nav>SECRET</nav></aside></nav>",
        "<textarea>SECRET</textarea>",
    ],
)
def test_hidden_text_is_not_read(hidden: str) -> None:
    page = f"<style>.ghost, #gone {{ display: none }}</style><main><p>Seen.</p>{hidden}<p>Also.</p></main>"
    assert parts_of(page) == [("paragraph", "Seen."), ("paragraph", "Also.")]


@pytest.mark.parametrize(
    "shown",
    [
        '<p style="opacity:0.9">text</p>',
        '<p style="font-size:0.8em">text</p>',
        '<p class="print">text</p>',
        '<p hidden="until-found">text</p>',
        '<section id="cookie-banner"><p>text</p></section>',
        '<aside class="admonition topic"><p>text</p></aside>',
    ],
)
def test_visible_text_is_read(shown: str) -> None:
    page = f"<style>@media print {{ .print {{ display: none }} }}</style><main><p>Seen.</p>{shown}</main>"
    assert any("text" in text for _, text in parts_of(page))


def test_content_is_found_without_main_or_article() -> None:
    page = f"""<title>Walking - Robots</title><body><div id="menu"><a href="a">A</a> <a href="b">B</a></div>
    <div id="wrap"><div id="text"><p>{"A robot walks. " * 20}</p><p>It stops.</p></div></div><div>Bye</div></body>"""
    draft = read(page)
    assert draft.title == "Walking"
    assert draft.parts[-1].text == "It stops."
    assert all("Bye" not in part.text and part.text != "A B" for part in draft.parts)


def test_asides_of_the_content_are_read() -> None:
    page = """<body><aside><p>Of the site.</p></aside><div class="sidebar"><p>Of the site.</p></div>
    <main><h1>T</h1><p>Text.</p><aside class="sidebar"><p>A remark.</p></aside>
    <aside class="tip"><p>Do it.</p></aside><aside class="starlight-aside starlight-aside--note" aria-label="Mind this">
    <p class="starlight-aside__title" aria-hidden="true">Mind this</p><p>It moves.</p></aside>
    <aside>See <a href="b">another page</a> and <a href="c">a third</a></aside></main></body>"""
    assert parts_of(page)[1:] == [
        ("paragraph", "Text."),
        ("paragraph", "A remark."),
        ("admonition", "Tip: Do it."),
        ("admonition", "Mind this: It moves."),
    ]


def test_buttons_are_not_read_unless_they_are_a_heading() -> None:
    page = """<main><h1>T <button>Copy link</button></h1><h2><button>What is it?</button></h2><p>A robot.</p>
    <pre>walk()</pre><button>Copy</button><span role="button">Copy</span></main>"""
    assert parts_of(page) == [
        ("heading", "T"),
        ("heading", "What is it?"),
        ("paragraph", "A robot."),
        ("code", "walk()"),
    ]


@pytest.mark.parametrize(
    ("page", "part"),
    [
        ('<p>The <span role="button">API server</span> stores.</p>', ("paragraph", "The API server stores.")),
        ('<ul><li>Open <b><span role="button">Files</span></b></li></ul>', ("list", "- Open Files")),
        ('<details><summary role="button">How?</summary><p>So.</p></details>', ("paragraph", "How?")),
        ('<div role="button"><img src="a.png" alt="A chart"></div>', ("image", "A chart")),
    ],
)
def test_content_with_the_role_of_a_button_is_read(page: str, part: tuple[str, str]) -> None:
    assert part in parts_of(f"<main><h1>T</h1><p>A robot.</p>{page}</main>")


def test_controls_with_the_role_of_a_button_are_not_read_beside_code() -> None:
    page = '<ol><li>Walk:<div><pre>walk()</pre><span role="button">Copy</span></div></li></ol>'
    assert "Copy" not in str(parts_of(f"<main>{page}<p><span role='button'>Copy</span></p></main>"))


def test_only_links_that_are_all_control_are_left_out() -> None:
    controls = ("Edit this page", "✏ Edit this page on GitHub", "Edit on GitLab", "View page source", "Suggest edits")
    texts = ("Edit on the canvas", "View source code of a node", "Suggest changes to the plan")
    page = f"<main><h1>T</h1><p>A {' '.join(f'<a href=x>{text}</a>' for text in (*controls, *texts))}.</p></main>"
    assert parts_of(page)[1:] == [("paragraph", f"A {' '.join(texts)}.")]


def test_figures_and_layout_tables_keep_captions_and_text() -> None:
    page = """<main><h1>T</h1><figure><figcaption>Sizes</figcaption>
    <table><tr><th>A</th></tr><tr><td>1</td></tr></table></figure>
    <figure><img src="a.png" alt="Arm"><p>Seen from above.</p><figcaption>The arm</figcaption></figure>
    <table><caption>Steps</caption><tr><td>Walk.</td></tr></table></main>"""
    assert [(part.kind, part.text, part.caption) for part in read(page).parts[1:]] == [
        ("table", "| A |\n| --- |\n| 1 |", "Sizes"),
        ("image", "Arm", ""),
        ("paragraph", "Seen from above.", ""),
        ("paragraph", "The arm", ""),
        ("paragraph", "Steps", ""),
        ("paragraph", "Walk.", ""),
    ]


def test_code_with_line_numbers_has_the_caption_of_its_figure() -> None:
    page = """<main><h1>T</h1><figure class="highlight js"><figcaption><span>src/app.js</span></figcaption><table><tr>
    <td class="gutter"><pre>1</pre></td><td class="code"><pre>let a</pre></td></tr></table></figure>
    <pre>let b</pre></main>"""
    assert [(part.text, part.caption) for part in read(page).parts[1:]] == [("let a", "src/app.js"), ("let b", "")]


def test_descriptions_of_the_same_term_are_one_field() -> None:
    page = "<h1>T</h1><dl><dt>Arm<dt>Hand<dd>It holds.<dd>It turns.<dt>Leg<dd>It walks.<dt>Tail</dl>"
    assert parts_of(page)[1:] == [
        ("field", "`Arm, Hand`\nIt holds.\nIt turns."),
        ("field", "`Leg`\nIt walks."),
        ("field", "`Tail`"),
    ]


@pytest.mark.parametrize(
    ("head", "title"),
    [
        ("<title>Legs and Arms | Robots</title>", "Legs and Arms"),
        ("<title>Legs — Robots 1.0 documentation</title>", "Legs"),
        ("<title>Legs - Part 1 - Robots</title>", "Legs - Part 1"),
        ("<title>Pre-flight</title>", "Pre-flight"),
        ('<title>x</title><meta property="og:title" content="Legs">', "Legs"),
    ],
)
def test_title_is_read_without_the_name_of_the_site(head: str, title: str) -> None:
    assert read(f"<head>{head}</head><body><main><p>Text.</p></main></body>").title == title


@pytest.mark.parametrize(
    ("page", "why"),
    [
        ('<meta http-equiv="Refresh" content="0; url=/new/">moved', "redirects to /new/"),
        ('<meta name="ROBOTS" content="NoIndex, follow"><main><p>x</p></main>', "noindex"),
        ("<body><div id=root></div><noscript>Enable JavaScript</noscript></body>", "no text"),
        ("<main><h1>Only a heading</h1></main>", "no text"),
        ("", "no text"),
    ],
)
def test_page_without_content_has_nothing_to_read(page: str, why: str) -> None:
    with pytest.raises(NothingToRead, match=why):
        html.read(document(page))


def test_page_that_reloads_itself_is_read() -> None:
    assert parts_of('<meta http-equiv="refresh" content="300"><main><p>x</p></main>') == [("paragraph", "x")]


def test_declared_encoding_is_used_if_it_is_valid() -> None:
    page = '<meta charset="windows-1251"><main><p>Робот</p></main>'.encode("windows-1251")
    assert read(page).parts[0].text == "Робот"
    for wrong in ("nonsense", "undefined", "unicode_escape", "utf-16", "gbk"):
        assert read(f"<meta charset={wrong}><main><p>Ü\\u0041b</p></main>").parts[0].text == "Ü\\u0041b"


def test_deep_nesting_is_read_or_refused_in_bounded_time() -> None:
    began = time.process_time()
    assert read("<main>" + "<div>" * 3000 + "deep" + "</div>" * 3000).parts[-1].text == "deep"
    assert plain(read("<main><p>" + "<b>" * 400 + "deep").parts[-1].text) == "deep"
    assert "deep" in read("<main>" + "<ul><li>" * 400 + "deep").parts[-1].text
    with pytest.raises(Unreadable, match="nested too deeply"):
        read("<div>" * 200_000)
    assert time.process_time() - began < 10  # seconds; the parser alone takes minutes for the last


def test_links_are_absolute_unique_and_without_nofollow() -> None:
    page = """<head><base href="/docs/v2/"></head><nav><a href="../a#x">a</a></nav><a href="b?q=1">b</a>
    <a href="https://other.example/">o</a><a href="mailto:me@x">m</a><a href="javascript:x()">j</a><a>none</a>
    <a rel="external NOFOLLOW" href="c">c</a><a href="b?q=1#again">b</a><a href="http://[bad">bad</a>"""
    assert html.links(document(page)) == [
        "https://book.example/docs/a",
        "https://book.example/docs/v2/b?q=1",
        "https://other.example/",
    ]
    assert html.links(document('<meta name="robots" content="nofollow"><a href="b">b</a>')) == []


def test_canonical_address() -> None:
    assert (
        html.canonical(document('<link rel="Canonical" href="/docs/nodes/#x">')) == "https://book.example/docs/nodes/"
    )
    assert html.canonical(document("<p>x</p>")) == ""


def test_marks_images_and_spans() -> None:
    page = """<main><p>A <em>soft</em> <strong>word</strong>, <a href="b.html#x">a <code>link</code></a>, x<sup>2</sup>,
<code><a href="/api">call()</a></code> <img src="i.png" alt="icon"> H<sub>2</sub>O.</p>
<p><img src="plot.png" alt="A plot"></p><p><img src="data:image/png;base64,xx" alt="inner"></p>
<table><tr><th rowspan="2">k</th><td>1</td></tr><tr><td>2</td></tr></table></main>"""
    document = Document("https://b.test/d/a.html", "d/a.html", "b", "html", page.encode())
    (draft,) = html.read(document)
    made = compose(document, draft)
    assert [(mark.kind, made.text[mark.start : mark.end], mark.target) for mark in made.marks] == [
        ("emphasis", "soft", ""),
        ("strong", "word", ""),
        ("link", "a `link`", "https://b.test/d/b.html#x"),
        ("sup", "^2", ""),
        ("link", "`call()`", "https://b.test/api"),
        ("image", "", "https://b.test/d/i.png"),
        ("sub", "2", ""),
    ]
    assert [(block.kind, block.info) for block in made.blocks if block.kind == "image"] == [
        ("image", "https://b.test/d/plot.png"),
        ("image", ""),
    ]
    assert made.text.endswith("| k | 1 |\n| --- | --- |\n| k | 2 |")


def test_function_and_option_descriptions_are_fields() -> None:
    page = """<main><dl class="py function"><dt class="sig" id="m.f">m.f(a)</dt><dd><p>Does it.</p>
<dl class="field-list"><dt>Parameters</dt><dd><p><strong>a</strong> (int) - how far</p></dd></dl></dd></dl>
<dl class="std option"><dt class="sig" id="o">--all</dt><dt class="sig" id="o2">-a</dt><dd><p>Everything.</p></dd></dl>
</main>"""
    assert parts_of(page) == [
        ("heading", "m.f"),
        ("field", "`m.f(a)`\nDoes it.\nParameters:\na (int) - how far"),
        ("heading", "--all"),
        ("field", "`--all`, `-a`\nEverything."),
    ]


def test_heading_has_the_anchor_of_its_section_and_table_may_have_one_column() -> None:
    parts = read('<main><section id="setup"><h2>Setup <a id="old"></a></h2><p>x</p></section></main>').parts
    assert [(part.text, part.anchor) for part in parts if part.kind == "heading"] == [("Setup", "setup")]
    parts = read("<main><h1>T</h1><table><tr><th>Wheels</th></tr><tr><td>Python 3.10</td></tr></table></main>").parts
    assert [part.text for part in parts if part.kind == "table"] == ["| Wheels |\n| --- |\n| Python 3.10 |"]
