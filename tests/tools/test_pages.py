"""The digest of generated pages depends on the code behind their figures; the check reports outdated pages."""

from pathlib import Path

import pytest
from tools.pages import Generated

from tools import pages

ENGINE = '"""Doc."""\nfrom . import rules\n\n\ndef answer():\n    return rules.RULE\n'


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a page that depends on `engine`, its part `rules` and its data, and not on `telling`."""
    code = {
        "bench/__init__.py": "",
        "bench/board.py": "from shop import engine\n\nFIGURE = engine.answer()\n",
        "shop/__init__.py": "",
        "shop/engine.py": ENGINE,
        "shop/rules.py": "from shop import telling\n\nRULE = 1\n",
        "shop/telling.py": "import shop.other\n\nWORD = 1\n",
        "shop/other.py": "OTHER = 1\n",
        "shop/weights/model.bin": "weights",
        "shop/elsewhere.py": "ELSE = 1\n",
    }
    for name, text in code.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "docs").mkdir()
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    monkeypatch.setattr(pages, "RESULTS", tmp_path / "bench" / "results")
    monkeypatch.setattr(pages, "_OURS", {"bench": tmp_path, "shop": tmp_path})
    monkeypatch.setattr(pages, "PAGES", (PAGE,))
    _forget()
    return tmp_path


PAGE = Generated("docs/BOARD.md", "make board", roots=("bench.board",), cut=("shop.telling",))


def _forget() -> None:
    pages._file.cache_clear()
    pages._tree.cache_clear()


def _changed(tree: Path, name: str, text: str) -> bool:
    """Whether the digest differs once a file has this text."""
    before = pages.code_digest(PAGE)
    kept = (tree / name).read_text() if (tree / name).exists() else ""
    (tree / name).write_text(text)
    _forget()
    after = pages.code_digest(PAGE)
    (tree / name).write_text(kept)
    _forget()
    return before != after


@pytest.mark.parametrize(
    ("name", "text", "differs"),
    [
        ("bench/board.py", "from shop import engine\n\nFIGURE = engine.answer() + 1\n", True),
        ("shop/rules.py", "from shop import telling\n\nRULE = 2\n", True),
        ("shop/weights/model.bin", "others", True),
        ("shop/engine.py", ENGINE.replace("Doc", "Other").replace(":\n    return", ":  # why\n    return"), False),
        ("shop/telling.py", "WORD = 2\n", False),
        ("shop/other.py", "OTHER = 2\n", False),
        ("shop/elsewhere.py", "ELSE = 2\n", False),
    ],
)
def test_digest_changes_only_with_code_that_figures_depend_on(tree: Path, name: str, text: str, differs: bool) -> None:
    assert _changed(tree, name, text) is differs


def test_hash_sign_in_a_string_is_not_a_comment(tree: Path) -> None:
    assert _changed(tree, "shop/rules.py", "RULE = '# one'\n")
    assert not _changed(tree, "shop/rules.py", "from shop import telling\n\nRULE = 1  # one\n")


def test_check_reports_outdated_pages_and_results(tree: Path) -> None:
    page = tree / PAGE.page
    page.write_text("# Board\n\nof commit abc, code 000000000000\n")
    assert ["docs/BOARD.md is of other code than this" in fault for fault in pages.faults()] == [True]
    page.write_text(f"# Board\n\nof commit abc-dirty, code {pages.code_digest(PAGE)}\n")
    assert "was made from a tree that differs" in next(pages.faults())
    page.write_text(f"# Board\n\nof commit abc, code {pages.code_digest(PAGE)}\n")
    assert not list(pages.faults())
    pages.RESULTS.mkdir()
    for name in ("load-abc1234", "load-abc1235", "index-scale-abc1234-dirty", "index-abc1234"):
        (pages.RESULTS / f"{name}.json").write_text("{}")
    reported = " ".join(pages.faults())
    assert "index-scale-abc1234-dirty.json was measured" in reported and "2 results of load" in reported
    assert "results of index" not in reported


@pytest.mark.slow
def test_real_pages_depend_on_the_expected_modules() -> None:
    _forget()
    for page, reached in ((pages.SCOREBOARD, "answering/story.py"), (pages.RELIABILITY, "index/edge_process.py")):
        files = {str(file.relative_to(pages.ROOT)) for file in pages._closure(page)}
        assert f"src/chapterverse/{reached}" in files, "including modules that are started by name"
        assert not any(name.startswith("src/chapterverse/web") for name in files)


@pytest.mark.parametrize("page", pages.PAGES, ids=lambda page: page.page)
def test_modules_named_in_pages_exist(page: Generated) -> None:
    for name in (*page.roots, *page.cut):
        place = pages._OURS[name.partition(".")[0]] / name.replace(".", "/")
        assert place.is_dir() or place.with_suffix(".py").is_file(), name
