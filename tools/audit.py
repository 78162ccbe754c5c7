"""Audit what is installed: each distribution is the pinned one, its licence may be shipped, and no advisory is known.

Advisories come from the package index through pip-audit. Where the index does not tell them (a mirror, no network), one
line says so and the rest still counts; a known advisory fails the check unless `ACCEPTED` says why it does not matter.
"""

import json
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

LOCKS = sorted(Path(__file__).parent.parent.glob("requirements*.lock"))
LOCK = Path(__file__).parent.parent / "requirements-test.lock"  # includes the others
# Advisory -> why it does not touch this product. Empty is the goal.
ACCEPTED: dict[str, str] = {}
# Would bind whoever ships the product with it; the LGPL does not, for a library that is imported.
REFUSED_LICENCES = {"GPL", "AGPL", "SSPL", "BUSL"}
FREE_LICENCES = {"Apache", "MIT", "BSD", "0BSD", "ISC", "MPL", "PSF", "Domain"}  # either will do where both are stated
ASKING_SECONDS = 120


def pinned() -> dict[str, str]:
    """The lock files' versions by name."""
    lines = (line for lock in LOCKS for line in lock.read_text("utf-8").splitlines() if "==" in line)
    return dict(line.rstrip(" \\").split("==", 1) for line in lines)


def drifted(versions: dict[str, str]) -> list[str]:
    """What is installed in another version than pinned, or not at all."""
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
    """What states a licence that binds whoever ships it."""
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
    """Of pip-audit's report: what is known against a version, how many were asked, how many could not be."""
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
    """pip-audit's report on the lock files; None where nobody could be asked."""
    command = [sys.executable, "-m", "pip_audit", "-r", str(LOCK), "--no-deps", "--disable-pip", "--format", "json"]
    try:
        done = subprocess.run(  # noqa: S603 - our own command
            command, capture_output=True, text=True, timeout=ASKING_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return None
    return done.stdout if done.stdout.startswith("{") else None


def main() -> int:
    """Print what is wrong; 1 when something is."""
    versions = pinned()
    drift = drifted(versions)
    wrong = drift or unshippable(list(versions))
    report = ask_advisories()
    known, asked, unasked = advisories(report) if report else ([], 0, len(versions))
    lines = [*wrong, *known]
    if unasked:
        lines.append(f"Advisories could not be asked for {unasked} of {len(versions)} packages: the index tells none.")
    lines.append(f"{len(versions)} packages audited, {asked} asked for advisories, {len(known)} known.")
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if wrong or known else 0


if __name__ == "__main__":
    sys.exit(main())
