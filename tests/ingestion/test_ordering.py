"""Pages are sorted in reading order."""

import json
import math
from pathlib import Path
from random import Random

import pytest

from chapterverse.ingestion.composing import compose
from chapterverse.ingestion.document import Document
from chapterverse.ingestion.options import SourceOptions
from chapterverse.ingestion.ordering import chapter_of, number_of, order_in_navigation, order_of
from chapterverse.ingestion.readers import read
from chapterverse.ingestion.sources.folder import Folder


def shuffled(paths: list[str]) -> list[str]:
    return sorted(Random(7).sample(paths, len(paths)), key=order_of)


@pytest.mark.parametrize(
    "paths",
    [
        ["index.md", "1-first.md", "02-second.md", "10-tenth.md", "about.md", "zoo.md", "guide/start.md"],
        ["guide/README.md", "guide/a.md", "guide/deep/index.md", "guide/deep/a.md", "reference/_index.md"],
        ["chapter2.md", "chapter9.md", "chapter10.md"],
        ["1. one/z.md", "02_two/a.md", "3-three.md", "unnumbered.md", "unnumbered/a.md"],
        ["/docs/", "/docs/guide/", "/docs/guide/a/", "/docs/guide/b/", "/docs/reference/"],
    ],
)
def test_paths_are_sorted_naturally(paths: list[str]) -> None:
    assert shuffled(paths) == paths


def test_explicit_position_comes_before_the_name() -> None:
    given = [("b.md", -3), ("z.md", 1.5), ("2-two.md", None), ("a.md", 11), ("aa.md", None)]
    assert sorted(given, key=lambda one: order_of(one[0], (), one[1])) == given
    assert order_of("zebra/a.md", (1,)) < order_of("ant/a.md", (2,)) < order_of("bee/a.md", (None,))


@pytest.mark.parametrize("value", [True, "3", None, math.nan, math.inf, [1]])
def test_values_that_are_no_numbers_are_ignored(value: object) -> None:
    assert number_of(value) is None


def test_pages_outside_of_the_navigation_come_last_except_the_start_page() -> None:
    assert order_of("README.md") < order_in_navigation(0) < order_in_navigation(10**9) < order_of("1-a.md")


def test_huge_numbers_sort_last() -> None:
    assert order_of("a.md", (), number_of(10**30)) > order_of("b.md", (), number_of(5000))


def test_chapters_of_an_epub_keep_their_order() -> None:
    places = [chapter_of(order_of("book.epub"), number) for number in range(12)]
    assert sorted(places) == places
    assert order_of("a-book.epub") < places[0] < order_of("c-book.epub")


async def test_positions_of_docusaurus_and_weights_of_hugo_are_used(tmp_path: Path) -> None:
    files = {
        "ros2/_category_.json": '{"label": "ROS 2", "position": 2}',
        "ros2/nodes.md": "---\nsidebar_position: 2\n---\nNodes.",
        "ros2/what.md": "---\nsidebar_position: 1\n---\nWhat.",
        "intro/_category_.yml": "position: 1",
        "intro/glossary.md": "Words.",
        "hugo/_index.md": "+++\nweight = 3\n+++\nSection.",
        "hugo/page.md": "Page.",
        "broken/_category_.json": "{",
        "broken/page.md": "Page.",
        "index.md": "Welcome.",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    documents = [one async for one in Folder(tmp_path, SourceOptions()).documents({}) if isinstance(one, Document)]
    pages = sorted((compose(one, read(one)[0]) for one in documents), key=lambda page: page.place)
    assert [page.url.removeprefix(f"{tmp_path.name}/") for page in pages] == [
        "index.md",
        "intro/glossary.md",
        "ros2/what.md",
        "ros2/nodes.md",
        "hugo/_index.md",
        "hugo/page.md",
        "broken/page.md",
    ]


async def test_surroundings_change_if_the_label_of_the_folder_changes(tmp_path: Path) -> None:
    async def surroundings(label: object) -> str:
        (tmp_path / "guide").mkdir(exist_ok=True)
        (tmp_path / "guide" / "page.md").write_text("Page.")
        (tmp_path / "guide" / "_category_.json").write_text(json.dumps({"label": label}))
        found = [one async for one in Folder(tmp_path, SourceOptions()).documents({}) if isinstance(one, Document)]
        return found[0].surroundings

    labels = ["One", "Two", ["no", "name"]]
    assert len({await surroundings(label) for label in labels}) == 3
