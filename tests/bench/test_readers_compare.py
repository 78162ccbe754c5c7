"""The measures of `make bench-readers`."""

from bench.readers.compare import PageFacts, compare, order
from bench.readers.sphinx_oracle import read_page

HTML = """<div class="body" role="main"><section id="top"><span id="label"></span><h1>Top</h1>
<p>Some <a class="reference internal" href="other.html#x">words</a>.</p>
<div class="highlight"><pre>code
</pre></div>
<table class="docutils"><thead><tr><th>a</th><th>b</th></tr></thead>
<tbody><tr><td rowspan="2">x</td><td>1</td></tr><tr><td>2</td></tr></tbody></table>
<section id="sub"><h2>Sub</h2><div class="toctree-wrapper">not here</div></section></section></div>"""


def test_sphinx_page_is_read() -> None:
    facts = read_page(HTML, "dir/page.html")
    assert facts.headings == [(1, "Top", ""), (2, "Sub", "sub")]
    assert facts.links == [("words", "dir/other.html#x")]
    assert facts.code == ["code\n"]
    assert facts.tables == [[["a", "b"], ["x", "1"], ["x", "2"]]]
    assert facts.anchors["label"] == "top"
    assert "not here" not in facts.text


def test_missing_and_extra_content_lower_the_scores() -> None:
    expected = {"page": PageFacts("a b c d", ["x"], [[["1", "2"]]], [(1, "T", "")], [("a", "page")])}
    same = compare(expected, expected, expected)
    assert all(score.share == 1 for score in same.values())
    found = {"page": PageFacts("a b c e e", ["y"], [[["1", "3"]]], [(1, "T", ""), (2, "U", "u")], [("a", "c")])}
    shares = {name: round(score.share, 2) for name, score in compare(expected, found, expected).items()}
    assert shares == {
        "words recall": 0.75, "words precision": 0.6, "code": 0, "cells": 0.5, "headings": 0.5, "links": 0,
    }  # fmt: skip
    assert compare(expected, {}, expected)["words recall"].share == 0


def test_order_of_pages_is_scored() -> None:
    assert order([["a", "b", "c"]], ["a", "x", "b", "c"]).share == 1
    assert order([["a", "b", "c"]], ["b", "a", "c"]).share == 0
    two = order([["a", "b"], ["c", "d"]], ["c", "a", "b", "d"])  # the order of the two lists does not count
    assert (two.hits, two.tries) == (2, 2)
