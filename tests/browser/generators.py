"""One small handbook, built by the real site generators.

MkDocs Material and Sphinx are installed once into an environment of their own below `.cache`, by exact versions: Sphinx
needs another docutils than the product. Docusaurus is some 1,200 packages and takes minutes, so it is installed only by
`make test-docusaurus` (`python -m tests.browser.generators`); where it is not, its tests are skipped.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SITES = Path(__file__).parent / "sites"
_CACHE = Path(__file__).parents[2] / ".cache"


def build(generator: str, scratch: Path) -> Path:
    """The folder of the built site."""
    project = scratch / generator
    shutil.copytree(SITES / generator, project)
    if generator != "sphinx":  # it has the same pages in its own markup
        shutil.copytree(SITES / "pages", project / "docs")
    built = {"mkdocs": _mkdocs, "sphinx": _sphinx, "docusaurus": _docusaurus}[generator](project)
    assert (built / "index.html").is_file()
    return built


def _mkdocs(project: Path) -> Path:
    _run([_python(), "-m", "mkdocs", "--quiet", "build"], project)
    return project / "site"


def _sphinx(project: Path) -> Path:
    _run([_python(), "-m", "sphinx", "-q", "-b", "html", ".", "site"], project)
    return project / "site"


def _docusaurus(project: Path) -> Path:
    """Built once for the same sources: it takes half a minute of computing."""
    tools = _docusaurus_home()
    if not (tools / ".ready").exists():
        pytest.skip("Docusaurus is not installed here: make test-docusaurus")
    built = tools / f"site-{_digest(*sorted(path for path in project.rglob('*') if path.is_file()))}"
    if not built.exists():
        (project / "node_modules").symlink_to(tools / "node_modules")
        _run(["node", "node_modules/@docusaurus/core/bin/docusaurus.mjs", "build"], project)
        shutil.move(project / "build", built)
    return built


def _python() -> str:
    """The interpreter of the environment with both Python generators."""
    wanted = SITES / "requirements.txt"
    place = _CACHE / f"generators-{_digest(wanted)}"
    python = place / "bin" / "python"
    if not (place / ".ready").exists():
        shutil.rmtree(place, ignore_errors=True)
        _run([sys.executable, "-m", "venv", "--without-pip", str(place)], SITES)
        install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps"]
        done = subprocess.run([*install, "-r", str(wanted)], capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"no site generators: pip could not install {wanted.relative_to(_CACHE.parent)}")
        (place / ".ready").touch()
    return str(python)


def _docusaurus_home() -> Path:
    return _CACHE / f"docusaurus-{_digest(SITES / 'docusaurus' / 'package.json')}"


def _digest(*files: Path) -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]


def _run(command: list[str], folder: Path) -> None:
    quiet = os.environ | {"NODE_ENV": "production", "NO_UPDATE_NOTIFIER": "1", "DOCUSAURUS_NO_UPDATE_CHECK": "1"}
    done = subprocess.run(
        command, cwd=folder, env=quiet, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def install_docusaurus() -> None:
    """Install it by exact versions, unless it is there."""
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
