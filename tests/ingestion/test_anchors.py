import pytest
from docutils.core import publish_doctree
from docutils.nodes import section
from hypothesis import given
from hypothesis import strategies as st

from chapterverse.ingestion.anchors import Anchors
from chapterverse.ingestion.document import AnchorStyle


def _all(style: AnchorStyle, *headings: str) -> list[str]:
    anchors = Anchors(style)
    return [anchors.take(heading) for heading in headings]


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        ("Hello World", "hello-world"),
        ("What's new in v2.0?", "whats-new-in-v20"),
        ("foo_bar & baz", "foo_bar--baz"),
        ("Über uns: Größe", "über-uns-größe"),
        ("日本語 の見出し", "日本語-の見出し"),
        ("🚀 Getting started", "-getting-started"),
        ("C++ / C#", "c--c"),
        ("a - b", "a---b"),
    ],
)
def test_github_slugs(heading: str, anchor: str) -> None:
    assert _all("github", heading) == [anchor]


def test_github_numbers_repeated_headings() -> None:
    assert _all("github", "Foo", "Foo", "foo", "Foo 1", "Foo-1") == ["foo", "foo-1", "foo-2", "foo-1-1", "foo-1-2"]


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        ("Hello  World", "hello-world"),
        ("What's new in v2.0?", "whats-new-in-v20"),
        ("foo_bar & baz", "foo_bar-baz"),
        ("Über uns", "uber-uns"),
        ("a - b", "a-b"),
        ("日本語", "_1"),
    ],
)
def test_mkdocs_slugs(heading: str, anchor: str) -> None:
    assert _all("mkdocs", heading) == [anchor]


def test_mkdocs_numbers_repeated_headings_with_underscores() -> None:
    assert _all("mkdocs", "Foo", "Foo", "Foo", "Step_1", "Step_1", "", "") == [
        *("foo", "foo_1", "foo_2"),
        *("step_1", "step_2"),
        *("_1", "_2"),
    ]


_TITLES = st.lists(
    st.sampled_from(["Setup", "Set up!", "The ROS 2 graph", "2 nodes", "Über", "日本"]), min_size=1, max_size=7
)


@given(_TITLES)
def test_sphinx_anchors_equal_those_of_docutils(titles: list[str]) -> None:
    source = "".join(f"{title}\n{'=' * 30}\n\ntext\n\n" for title in ["First", *titles])
    settings = {"auto_id_prefix": "id", "report_level": 5, "doctitle_xform": False}
    expected = [found["ids"][0] for found in publish_doctree(source, settings_overrides=settings).findall(section)]
    assert _all("sphinx", "First", *titles) == expected


@pytest.mark.parametrize("style", ["github", "mkdocs", "sphinx"])
def test_explicit_anchor_is_used(style: AnchorStyle) -> None:
    anchors = Anchors(style)
    assert anchors.take("Setup", "install") == "install"
    assert anchors.take("Setup") == "setup"


def test_explicit_anchor_is_reserved_except_for_github() -> None:
    found: dict[AnchorStyle, str] = {}
    for style in ("github", "mkdocs", "sphinx"):
        anchors = Anchors(style)
        anchors.take("Other", "setup")
        found[style] = anchors.take("Setup")
    assert found == {"github": "setup", "mkdocs": "setup_1", "sphinx": "id1"}


def test_number_of_any_length_in_a_heading_is_kept() -> None:
    anchor = f"a_{'9' * 5_000}"
    assert _all("mkdocs", anchor, anchor) == [anchor, f"{anchor}_1"]


def test_ten_thousand_equal_headings_have_distinct_anchors() -> None:
    for style in ("github", "mkdocs", "sphinx"):
        assert len(set(_all(style, *["Same"] * 10_000))) == 10_000
