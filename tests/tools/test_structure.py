"""The structure page: figures of a small package, and the rows of the committed page."""

from pathlib import Path

from tools import structure

FILES = {
    "__init__.py": "",
    "one.py": "from chapterverse.parts import two\n\nclass Case: ...\n",
    "parts/__init__.py": "",
    "parts/two.py": "import chapterverse.parts.three\n\nclass Case: ...\nclass _Own: ...\n",
    "parts/three.py": "def plain() -> int:\n    return 1\n",
    "other/three.py": "from chapterverse.one import Case\nfrom chapterverse.parts.two import Case as Two\n",
}


def package(folder: Path) -> Path:
    for name, text in FILES.items():
        path = folder / "chapterverse" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_importers_and_duplicate_names_are_found(tmp_path: Path) -> None:
    files = structure.modules(package(tmp_path))
    found = structure.importers(files)
    assert found["chapterverse.parts.two"] == {"chapterverse.one", "chapterverse.other.three"}
    assert found["chapterverse.parts.three"] == {"chapterverse.parts.two"}
    assert structure.several(structure.classes(files)) == ["Case"]


def test_figures_count_modules_lines_and_names(tmp_path: Path) -> None:
    shown = dict(structure.figures(package(tmp_path), "one parts"))
    assert shown["modules"] == "6"
    assert shown["lines"] == "11"
    assert shown["modules with one importer"] == "2 (33%)"
    assert shown["class names that several modules define"] == "1: `Case`"
    assert shown["module names that several folders have"] == "1: `three`"
    assert shown["functions above complexity 12"] == "0"
    assert shown["lines of the answer core"] == "9"


def test_lines_are_counted_by_subject(tmp_path: Path) -> None:
    source = package(tmp_path)
    for name in ("ingestion/readers/plain.py", "ingestion/links.py", "database.py"):
        path = source / "chapterverse" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("1\n2\n")
    expected = {"readers of formats": 2, "rest of ingestion": 2, "conversations": 2, "other modules": 11}
    assert structure.by_subject(source) == expected


def test_complex_function_is_listed(tmp_path: Path) -> None:
    branches = "".join(f"    if number == {at}:\n        return {at}\n" for at in range(14))
    (package(tmp_path) / "chapterverse" / "many.py").write_text(f"def pick(number):\n{branches}")
    assert structure.complexity(tmp_path) == [("pick", 15)]


def test_committed_page_has_every_row(tmp_path: Path) -> None:
    page = structure.PAGE.read_text("utf-8")
    assert structure.VERSION_1 in page
    assert all(f"| {name} |" in page for name, _ in structure.figures(package(tmp_path), "one"))
