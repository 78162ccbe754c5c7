"""Audits the installed distributions: pinned versions, licences that allow distribution, and known advisories.

Advisories come from the package index through pip-audit. If the index has none (a mirror, or no network), a line says
so and the other checks still count. A known advisory is an error unless `ACCEPTED` says why it does not matter.
"""

import json
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

LOCKS = sorted(Path(__file__).parent.parent.glob("requirements*.lock"))
LOCK = Path(__file__).parent.parent / "requirements-test.lock"  # includes the others
# Advisory -> why it does not affect this product. Should be empty.
ACCEPTED: dict[str, str] = {}
# Licences that would bind everyone who distributes the product. The LGPL does not, for a library that is imported.
REFUSED_LICENCES = {"GPL", "AGPL", "SSPL", "BUSL"}
FREE_LICENCES = {"Apache", "MIT", "BSD", "0BSD", "ISC", "MPL", "PSF", "Domain"}  # one is enough if several are stated
ASKING_SECONDS = 120


def pinned() -> dict[str, str]:
    """The lock files' versions by name, of what this Python needs."""
    lines = (line for lock in LOCKS for line in lock.read_text("utf-8").splitlines() if "==" in line)
    needed = (
        one for one in (Requirement(line.rstrip(" \\")) for line in lines) if not one.marker or one.marker.evaluate()
    )
    return {one.name: str(one.specifier).removeprefix("==") for one in needed}


def drifted(versions: dict[str, str]) -> list[str]:
    """Distributions that are missing or installed in another version than pinned."""
    found = []
    for name, version in versions.items():
        try:
            installed = distribution(name).version
        except PackageNotFoundError:
            installed = "nothing"
        if installed != version:
            found.append(f"{name}: {version} is pinned, {installed} is installed; run: make setup")
    return found


def unshippable(names: list[str]) -> list[str]:
    """Distributions with a licence that binds everyone who distributes the product."""
    found = []
    for name in names:
        about = distribution(name).metadata
        stated = [*(about.get_all("License-Expression") or []), *(about.get_all("Classifier") or [])]
        licence = " ".join(line for line in stated if "::" not in line or line.startswith("License"))
        words = {word.split("-")[0].strip("()v") for word in licence.split()}
        if words & REFUSED_LICENCES and not words & FREE_LICENCES:
            found.append(f"{name}: licence {licence.strip()!r}")
    return found


def advisories(report: str) -> tuple[list[str], int, int]:
    """From pip-audit's report: known advisories, the number of packages checked, and the number that could not be."""
    dependencies = json.loads(report)["dependencies"]
    asked = [one for one in dependencies if "skip_reason" not in one]
    known = [
        f"{one['name']} {one['version']}: {flaw['id']}, repaired in {', '.join(flaw['fix_versions']) or 'no release'}"
        for one in asked
        for flaw in one["vulns"]
        if flaw["id"] not in ACCEPTED
    ]
    return known, len(asked), len(dependencies) - len(asked)


def ask_advisories() -> str | None:
    """pip-audit's report on the lock files, or None if no index could be asked."""
    command = [sys.executable, "-m", "pip_audit", "-r", str(LOCK), "--no-deps", "--disable-pip", "--format", "json"]
    try:
        done = subprocess.run(  # noqa: S603 - our own command
            command, capture_output=True, text=True, timeout=ASKING_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return None
    return done.stdout if done.stdout.startswith("{") else None


def main() -> int:
    """Print what is wrong, and return 1 if anything is."""
    versions = pinned()
    drift = drifted(versions)
    wrong = drift or unshippable(list(versions))
    report = ask_advisories()
    known, asked, unasked = advisories(report) if report else ([], 0, len(versions))
    lines = [*wrong, *known]
    if unasked:
        lines.append(f"Advisories could not be asked for {unasked} of {len(versions)} packages: the index has none.")
    lines.append(f"{len(versions)} packages audited, {asked} checked for advisories, {len(known)} known.")
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if wrong or known else 0


if __name__ == "__main__":
    sys.exit(main())
