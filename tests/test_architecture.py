"""The caps on the tail, and house rules that no linter knows. Layers are held by import-linter (`make check`)."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "src" / "chapterverse").rglob("*.py"))
DRAWERS = {"utils", "util", "helpers", "helper", "common", "manager", "managers", "base", "misc", "core"}

COMMON_FOLDERS = {"/", "/tmp", "/var/tmp", "/home", "/root", "/opt", "/srv", "/usr/src"}  # of no machine in particular

FILE_LINES = 600
FUNCTION_LINES = 60
PARAMETERS = 6

each_file = pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT / "src" / "chapterverse")))


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def is_command(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """A command's parameters are its options, named by the user and never passed by position."""
    names = {ast.unparse(decorator).split("(")[0] for decorator in function.decorator_list}
    return "main.command" in names


@each_file
def test_a_file_stays_small_enough_to_read(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) <= FILE_LINES


@each_file
def test_a_function_stays_small_enough_to_read(path: Path) -> None:
    for function in functions(ast.parse(path.read_text("utf-8"))):
        assert function.end_lineno is not None
        lines = function.end_lineno - function.lineno + 1
        assert lines <= FUNCTION_LINES, f"{function.name} has {lines} lines"


@each_file
def test_a_function_takes_few_parameters(path: Path) -> None:
    for function in functions(ast.parse(path.read_text("utf-8"))):
        named = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
        count = len([argument for argument in named if argument.arg not in ("self", "cls")])
        assert count <= PARAMETERS or is_command(function), f"{function.name} takes {count} parameters"


@each_file
def test_a_module_has_a_docstring(path: Path) -> None:
    docstring = ast.get_docstring(ast.parse(path.read_text("utf-8")))
    assert docstring, "every module starts with a docstring"


def test_a_class_name_means_one_thing() -> None:
    trees = [ast.parse(path.read_text("utf-8")) for path in SOURCES]
    names = [node.name for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)]
    twice = {name for name in names if names.count(name) > 1 and not name.startswith("_")}
    assert twice <= {"Book"}, "of the library, and as the scope of a question"


@each_file
def test_no_module_is_called_utils_or_the_like(path: Path) -> None:
    assert path.stem not in DRAWERS


@each_file
def test_nothing_connects_or_reads_settings_at_import(path: Path) -> None:
    for node in ast.parse(path.read_text("utf-8")).body:
        called = [ast.unparse(call.func) for call in ast.walk(node) if isinstance(call, ast.Call)]
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            assert "Settings.load" not in called
            assert "os.environ.get" not in called


def test_no_path_of_a_machine_and_no_registry_is_named() -> None:
    tracked = [p for p in ROOT.rglob("*") if p.suffix in {".py", ".md", ".toml", ".lock", ".mdx", ".jsonl"}]
    own = [p for p in tracked if not {".venv", ".git", ".cache", "node_modules"} & set(p.relative_to(ROOT).parts)]
    assert own
    for path in own:
        text = path.read_text("utf-8")
        assert f"{ROOT}/" not in text, path
        assert str(ROOT.parent) in COMMON_FOLDERS or f"{ROOT.parent}/" not in text, path
        for host in ("pypi" + ".org", "pythonhosted" + ".org", "registry.npmjs" + ".org"):
            assert host not in text, path
