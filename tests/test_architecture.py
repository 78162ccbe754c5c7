"""Limits on the size of files and functions, and rules that no linter checks. import-linter checks the layers."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "src" / "chapterverse").rglob("*.py"))
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "managers", "base", "misc", "core"}

COMMON_FOLDERS = {"/", "/tmp", "/var/tmp", "/home", "/root", "/opt", "/srv", "/usr/src"}  # not specific to one machine

FILE_LINES = 600
FUNCTION_LINES = 60
PARAMETERS = 6


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT / "src" / "chapterverse"))


@pytest.fixture(scope="module")
def modules() -> dict[str, ast.Module]:
    """Every module of the package, parsed."""
    return {name_of(path): ast.parse(path.read_text("utf-8")) for path in SOURCES}


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def is_command(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether it is a command, whose parameters are options and never passed by position."""
    names = {ast.unparse(decorator).split("(")[0] for decorator in function.decorator_list}
    return "main.command" in names


def test_files_have_at_most_600_lines() -> None:
    lines = {name_of(path): len(path.read_text("utf-8").splitlines()) for path in SOURCES}
    assert lines
    assert {name: count for name, count in lines.items() if count > FILE_LINES} == {}


def test_functions_have_at_most_60_lines(modules: dict[str, ast.Module]) -> None:
    lines = {
        f"{name}:{function.lineno} {function.name}": (function.end_lineno or 0) - function.lineno + 1
        for name, module in modules.items()
        for function in functions(module)
    }
    assert {where: count for where, count in lines.items() if count > FUNCTION_LINES} == {}


def test_functions_have_at_most_6_parameters(modules: dict[str, ast.Module]) -> None:
    many = {
        f"{name}:{function.lineno} {function.name}": count
        for name, module in modules.items()
        for function in functions(module)
        if (count := parameters(function)) > PARAMETERS and not is_command(function)
    }
    assert many == {}


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    named = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return len([argument for argument in named if argument.arg not in ("self", "cls")])


def test_every_module_has_a_docstring(modules: dict[str, ast.Module]) -> None:
    assert [name for name, module in modules.items() if not ast.get_docstring(module)] == []


def test_class_names_are_unique(modules: dict[str, ast.Module]) -> None:
    names = [node.name for module in modules.values() for node in module.body if isinstance(node, ast.ClassDef)]
    assert {name for name in names if names.count(name) > 1 and not name.startswith("_")} == set()


SHARED_NAMES = {
    "book": "the book's data, and the routes for it",
    "errors": "the error classes, and their HTTP responses",
    "llms_txt": "written for other tools, and read as a source",
    "markdown": "of a model's answer, and of a page",
    "project": "of Sphinx, and of AsciiDoc",
    "routes": "one for each subject of the API",
    "sessions": "the routes, and the commands",
}


def test_module_names_are_unique() -> None:
    names = [path.stem for path in SOURCES if not path.stem.startswith("__")]
    twice = {name for name in names if names.count(name) > 1}
    assert twice == SHARED_NAMES.keys(), "a name stands for one thing; list a shared name with its meanings"


OLD_NAMES = {"sureness", "advising", "crew", "manuscript", "hiding", "hostile", "likeness", "relay", "lean", "shipped"}
OLD_PHRASES = (  # in two pieces, so that this file does not contain them
    ("takes the call", "along"),
    ("stands for", "another"),
    ("answers what it", "was not asked"),
    ("PARTING", "_SECONDS"),
    ("to say", "goodbye"),
    ("How good, how", "strong"),
)


def test_names_and_phrases_that_the_style_guide_replaces_do_not_occur() -> None:
    assert {path.stem for path in SOURCES} & OLD_NAMES == set()
    listed = subprocess.run(["git", "ls-files", "*.py", "*.md", "*.js"], cwd=ROOT, capture_output=True, check=True)
    for name in listed.stdout.decode().split():
        text = (ROOT / name).read_text("utf-8")
        for first, second in OLD_PHRASES:
            assert not re.search(rf"{first}[\s#*]*{second}", text), f"{name}: {first} {second}"


def test_no_module_has_a_vague_name() -> None:
    assert [name_of(path) for path in SOURCES if path.stem in VAGUE_NAMES] == []


def test_nothing_connects_or_reads_settings_at_import(modules: dict[str, ast.Module]) -> None:
    for name, module in modules.items():
        for node in module.body:
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                called = {ast.unparse(call.func) for call in ast.walk(node) if isinstance(call, ast.Call)}
                assert not called & {"Settings.load", "os.environ.get"}, name


def test_no_file_contains_a_local_path_or_a_registry_host() -> None:
    tracked = [p for p in ROOT.rglob("*") if p.suffix in {".py", ".md", ".toml", ".lock", ".mdx", ".jsonl"}]
    own = [p for p in tracked if not {".venv", ".git", ".cache", "node_modules"} & set(p.relative_to(ROOT).parts)]
    assert own
    for path in own:
        text = path.read_text("utf-8")
        assert f"{ROOT}/" not in text, path
        assert str(ROOT.parent) in COMMON_FOLDERS or f"{ROOT.parent}/" not in text, path
        for host in ("pypi" + ".org", "pythonhosted" + ".org", "registry.npmjs" + ".org"):
            assert host not in text, path


def test_every_library_that_is_imported_is_declared(modules: dict[str, ast.Module]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["all"]]
    declared = {re.split(r"[^\w.-]", one)[0].lower().replace("_", "-") for one in wanted}
    providers = packages_distributions()
    for name, module in modules.items():
        for node in ast.walk(module):
            imported = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            imported += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for root in {one.split(".")[0] for one in imported} - sys.stdlib_module_names - {"chapterverse"}:
                known = {one.lower().replace("_", "-") for one in providers.get(root, [root])}
                assert known & declared, f"{name} imports {root}"
