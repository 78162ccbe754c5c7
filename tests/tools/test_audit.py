"""The audit of installed packages: versions, licences and advisories."""

import json
from importlib.metadata import version

import pytest

from tools import audit


def test_installed_versions_match_the_lock() -> None:
    assert audit.drifted(audit.pinned()) == []


def test_wrong_version_and_missing_package_are_reported() -> None:
    found = audit.drifted({"numpy": "0.0.1", "no-such-package-at-all": "1.0"})
    assert found[0].startswith(f"numpy: 0.0.1 is pinned, {version('numpy')} is installed")
    assert "nothing is installed" in found[1]


@pytest.mark.parametrize(
    ("headers", "refused"),
    [
        ("License-Expression: GPL-3.0-only", True),
        ("License-Expression: AGPL-3.0-or-later", True),
        ("License-Expression: LGPL-3.0-only", False),
        ("License-Expression: MIT OR GPL-2.0-only", False),
        (
            "Classifier: License :: OSI Approved :: GNU General Public License v3 (GPLv3)\nLicense-Expression: GPL-3.0",
            True,
        ),
        ("Classifier: Topic :: GPL", False),
    ],
)
def test_copyleft_licences_are_rejected(headers: str, refused: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    class Installed:
        metadata = __import__("email").message_from_string(f"Name: thing\n{headers}\n")

    monkeypatch.setattr(audit, "distribution", lambda _: Installed)
    assert bool(audit.unshippable(["thing"])) is refused


def test_advisories_name_the_fixed_version_and_count_skipped_packages() -> None:
    report = {
        "dependencies": [
            {"name": "good", "version": "1.0", "vulns": []},
            {"name": "bad", "version": "2.0", "vulns": [{"id": "PYSEC-1", "fix_versions": ["2.1"]}]},
            {"name": "unknown", "skip_reason": "not found"},
        ]
    }
    assert audit.advisories(json.dumps(report)) == (["bad 2.0: PYSEC-1, repaired in 2.1"], 2, 1)


def test_audit_passes_without_advisory_server_and_fails_on_version_drift(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(audit, "ask_advisories", lambda: None)
    assert audit.main() == 0
    assert "could not be asked" in capsys.readouterr().out
    monkeypatch.setattr(audit, "pinned", lambda: {"numpy": "0.0.1"})
    assert audit.main() == 1
