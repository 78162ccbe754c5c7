"""Builds a small handbook with the real site generators, and new sites with our plug-ins installed from packages.

MkDocs Material and Sphinx are installed once, with pinned versions, into their own environment below `.cache`: Sphinx
needs another docutils than this package. Docusaurus has about 1,200 packages and takes minutes, so it is installed only
by `make test-docusaurus` (`python -m tests.browser.generators`). Without it, its tests are skipped.
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

SITES = Path(__file__).parent / "sites"
PLUGINS = Path(__file__).parents[2] / "plugins"
_CACHE = Path(__file__).parents[2] / ".cache"
_NAMES = {
    "mkdocs": "mkdocs-chapterverse",
    "sphinx": "sphinx-chapterverse",
    "docusaurus": "docusaurus-plugin-chapterverse",
}
# The configuration of a new site; `%s` is replaced by the lines from the plug-in's README.
_FRESH = {
    "mkdocs": ("mkdocs.yml", "site_name: Fresh\ntheme: {name: material, font: false, palette: {scheme: default}}\n%s"),
    "sphinx": ("conf.py", 'project = "Fresh"\ncopyright = "Nobody"\nversion = "1"\nhtml_theme = "furo"\n%s'),
    "docusaurus": (
        "docusaurus.config.js",
        'module.exports = {\n  title: "Fresh",\n  url: "http://site.test",\n  baseUrl: "/",\n'
        '  themes: ["@docusaurus/theme-classic"],\n%s};\n',
    ),
}


def build(generator: str, scratch: Path) -> Path:
    """Builds the handbook; returns the folder of the site."""
    project = scratch / generator
    shutil.copytree(SITES / generator, project)
    if generator != "sphinx":  # Sphinx has the same pages as reStructuredText
        shutil.copytree(SITES / "pages", project / "docs")
    built = {"mkdocs": _mkdocs, "sphinx": _sphinx, "docusaurus": _docusaurus}[generator](project)
    assert (built / "index.html").is_file()
    return built


def build_sphinx(scratch: Path, **settings: str) -> Path:
    """Builds the handbook with Sphinx and other settings, such as a theme."""
    project = scratch / "sphinx"
    shutil.copytree(SITES / "sphinx", project)
    with (project / "conf.py").open("a") as configuration:
        configuration.writelines(f"{name} = {value!r}\n" for name, value in settings.items())
    return _sphinx(project)


def build_fresh(generator: str, scratch: Path, options: Mapping[str, Any] | None = None, builder: str = "html") -> Path:
    """Builds a new site of two pages, configured as the plug-in's README says, with more options."""
    project = scratch / "fresh"
    name, rest = _FRESH[generator]
    pages = project if generator == "sphinx" else project / "docs"
    pages.mkdir(parents=True)
    (project / name).write_text(rest % _configuration(generator, options or {}), "utf-8")
    if generator == "sphinx":
        (pages / "index.rst").write_text(
            "Fresh\n=====\n\nIt is `new <page.html>`_.\n\n.. toctree::\n\n   page\n", "utf-8"
        )
        (pages / "page.rst").write_text("Page\n====\n\nOf the site.\n", "utf-8")
    else:
        (pages / "index.md").write_text("---\nslug: /\n---\n\n# Fresh\n\nIt is [new](page.md).\n", "utf-8")
        (pages / "page.md").write_text("# Page\n\nOf the site.\n", "utf-8")
    if generator == "docusaurus":
        return _docusaurus(project, plugin=_packed(scratch))
    installed = _installed(generator, scratch)
    return _mkdocs(project, installed) if generator == "mkdocs" else _sphinx(project, installed, builder)


def _configuration(generator: str, options: Mapping[str, Any]) -> str:
    """The configuration from the plug-in's README, with the server of the tests."""
    readme = (PLUGINS / _NAMES[generator] / "README.md").read_text("utf-8")
    lines: str = re.findall(r"```(?:yaml|python|js)\n(.+?)```", readme, re.DOTALL)[0]
    plugin_options = json.dumps({"server": "http://chapterverse.test", **options})
    if generator == "sphinx":
        more = "".join(f"chapterverse_{name} = {value!r}\n" for name, value in options.items())
        return lines.replace("https://ask.example.com", "http://chapterverse.test") + more
    written, count = re.subn(r'\{ ?server: "https://ask\.example\.com" ?\}', lambda _: plugin_options, lines)
    assert count == 1
    return written.replace("plugins: [[", 'plugins: [["@docusaurus/plugin-content-docs", { routeBasePath: "/" }], [')


def _installed(generator: str, scratch: Path) -> Path:
    """A folder with the plug-in, installed by pip."""
    source = scratch / "source"
    shutil.copytree(PLUGINS / _NAMES[generator], source)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    _run([*command, "--disable-pip-version-check", "--target", str(scratch / "installed"), str(source)], scratch)
    return scratch / "installed"


def _packed(scratch: Path) -> Path:
    """The plug-in's folder, packed and unpacked as npm does."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("no npm on PATH")
    _run([npm, "pack", "--silent", "--ignore-scripts", str(PLUGINS / _NAMES["docusaurus"])], scratch)
    (archive,) = scratch.glob("*.tgz")
    shutil.unpack_archive(archive, scratch / "unpacked", filter="data")
    return scratch / "unpacked" / "package"


def _mkdocs(project: Path, plugins: Path | None = None) -> Path:
    _run([_python(), "-m", "mkdocs", "build", "--strict"], project, plugins)
    return project / "site"


def _sphinx(project: Path, plugins: Path | None = None, builder: str = "html") -> Path:
    _run([_python(), "-m", "sphinx", "-q", "-W", "-d", "../doctrees", "-b", builder, ".", "site"], project, plugins)
    return project / "site"


def _docusaurus(project: Path, plugin: Path | None = None) -> Path:
    """Builds once for the same sources, because it takes half a minute of CPU time."""
    tools = _docusaurus_home()
    if not (tools / ".ready").exists():
        pytest.skip("Docusaurus is not installed here: make test-docusaurus")
    sources = [path for place in (project, plugin) if place for path in place.rglob("*") if path.is_file()]
    built = tools / f"site-{_digest(*sorted(sources))}"
    if not built.exists():
        modules = project / "node_modules"
        modules.mkdir()
        for module in (tools / "node_modules").iterdir():
            (modules / module.name).symlink_to(module)
        if plugin:
            (modules / _NAMES["docusaurus"]).symlink_to(plugin)
        _run(["node", "node_modules/@docusaurus/core/bin/docusaurus.mjs", "build"], project)
        shutil.move(project / "build", built)
    return built


def _python() -> str:
    """Returns the interpreter of the environment with both Python generators. The first test process that needs it
    installs it."""
    wanted = SITES / "requirements.txt"
    place = _CACHE / f"generators-{_digest(wanted)}"
    python = place / "bin" / "python"
    _CACHE.mkdir(exist_ok=True)
    with (_CACHE / "generators.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _install(python, place, wanted)
    return str(python)


def _install(python: Path, place: Path, wanted: Path) -> None:
    if not (place / ".ready").exists():
        shutil.rmtree(place, ignore_errors=True)
        _run([sys.executable, "-m", "venv", "--without-pip", str(place)], SITES)
        install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps"]
        done = subprocess.run([*install, "-r", str(wanted)], capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"no site generators: pip could not install {wanted.relative_to(_CACHE.parent)}")
        (place / ".ready").touch()


def _docusaurus_home() -> Path:
    return _CACHE / f"docusaurus-{_digest(SITES / 'docusaurus' / 'package.json')}"


def _digest(*files: Path) -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]


def _run(command: list[str], folder: Path, plugins: Path | None = None) -> None:
    """Runs a command, with the plug-ins of a folder on PYTHONPATH."""
    quiet = (
        os.environ
        | {"PYTHONPATH": str(plugins or "")}
        | {"NODE_ENV": "production", "NO_UPDATE_NOTIFIER": "1", "DOCUSAURUS_NO_UPDATE_CHECK": "1"}
    )
    done = subprocess.run(
        command, cwd=folder, env=quiet, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def install_docusaurus() -> None:
    """Installs Docusaurus with pinned versions, unless it is there."""
    tools = _docusaurus_home()
    if (tools / ".ready").exists():
        return
    npm = shutil.which("npm")
    if npm is None:
        sys.exit("npm is missing: apt-get install -y npm")
    tools.mkdir(parents=True, exist_ok=True)
    shutil.copy(SITES / "docusaurus" / "package.json", tools)
    _run([npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"], tools)
    (tools / ".ready").touch()


if __name__ == "__main__":
    install_docusaurus()
