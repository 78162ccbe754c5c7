"""The lock files: three groups, each including the one before, with versions and hashes."""

import itertools
import re
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tools.lock import GROUPS, OLDER, is_usable

ROOT = Path(__file__).parents[2]


def locked(name: str) -> dict[str, str]:
    """The packages of one file, each with the rest of its entry."""
    text = (ROOT / name).read_text("utf-8")
    return dict(re.findall(r"^([a-z0-9.-]+)==((?:.*\\\n)*.*)$", text, re.MULTILINE))


@pytest.mark.parametrize("name", [name for name, _, _ in GROUPS])
def test_every_package_has_hashes_and_no_address(name: str) -> None:
    packages = locked(name)
    assert packages
    for package, entry in packages.items():
        assert re.fullmatch(r"[\w.+]+(?: ; \w+ < \"[\d.]+\")?(?: \\\n    --hash=sha256:[0-9a-f]{64})+", entry), package
    assert "://" not in (ROOT / name).read_text("utf-8")


def test_each_group_includes_the_one_before_and_repeats_none_of_it() -> None:
    names = [name for name, _, _ in GROUPS]
    for before, name in itertools.pairwise(names):
        assert f"-r {before}\n" in (ROOT / name).read_text("utf-8")
    every = [package for name in names for package in locked(name)]
    assert len(every) == len(set(every))


@pytest.mark.parametrize("python", ["3.11.0", "3.11.9", "3.12.0", "3.13.0", "3.14.0"])
def test_every_supported_python_finds_what_its_packages_need(python: str) -> None:
    """pip refuses a package that is not in a lock file, so that nothing could be installed with that Python."""
    known = {package for name, _, _ in GROUPS for package in locked(name)}
    environment = {"python_full_version": python, "python_version": python.rpartition(".")[0], "extra": ""}
    missing = set()
    for package in known:
        try:
            needs = distribution(package).requires or []
        except PackageNotFoundError:  # of an older Python
            assert package in {older for _, older, _, _ in OLDER}
            continue
        for need in map(Requirement, needs):
            if not need.marker or need.marker.evaluate(environment):
                missing |= {canonicalize_name(need.name)} - known
    assert missing <= {"pip"}


def test_runtime_lock_has_no_developer_tools() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    running = locked("requirements.lock")
    needed = {canonicalize_name(Requirement(one).name) for one in project["dependencies"]}
    tools = {canonicalize_name(Requirement(one).name) for one in project["optional-dependencies"]["dev"]}
    assert needed <= set(running)
    assert not tools & set(running)
    assert tools <= set(locked("requirements-test.lock"))


@pytest.mark.parametrize(
    ("file", "usable"),
    [
        ("thing-1.2-py3-none-any.whl", True),
        ("thing-1.2.tar.gz", True),
        ("thing-1.2-cp39-abi3-manylinux_2_17_x86_64.manylinux2014_x86_64.whl", True),
        ("thing-1.2-cp311-cp311-macosx_11_0_arm64.whl", True),
        ("thing-1.2-cp314-cp314-musllinux_1_2_aarch64.whl", True),
        ("thing-1.2-cp39-cp39-manylinux_2_17_x86_64.whl", False),
        ("thing-1.2-cp311-cp311-win_amd64.whl", False),
        ("thing-1.3-py3-none-any.whl", False),
        ("thing-1.2.win32-py2.4.exe", False),
    ],
)
def test_only_files_for_supported_systems_are_usable(file: str, usable: bool) -> None:
    assert is_usable(file, "1.2") is usable


def test_make_run_installs_only_the_runtime_group() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    rules = dict(re.findall(r"^(\S+): (.*\n(?:\t.*\n)*)", makefile, re.MULTILINE))
    assert rules["run"].startswith("$(READY) ##") and rules["test"].startswith("$(TOOLS) ##")
    assert "--require-hashes -r requirements.lock" in rules["$(READY)"]
    assert "--require-hashes -r requirements-test.lock" in rules["$(TOOLS)"]
    for rule in ("$(READY)", "$(TOOLS)"):
        assert "@echo" in rules[rule]
        assert "--quiet --require" not in rules[rule]
