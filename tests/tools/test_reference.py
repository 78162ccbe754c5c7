"""The reference pages are generated from the code and complete."""

import subprocess
import sys

import click
from tools.reference import ROOT

from chapterverse.cli import main
from chapterverse.settings import Settings


def test_the_generated_pages_match_the_code() -> None:
    # In its own process: click keeps the help option of a command as the first caller of this process wanted it.
    command = [sys.executable, "-m", "tools.reference", "--check"]
    check = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert check.returncode == 0, check.stderr


def test_every_setting_is_described() -> None:
    page = (ROOT / "docs" / "settings.md").read_text("utf-8")
    for name, field in Settings.model_fields.items():
        assert field.description
        assert f"| `{name.upper()}` |" in page


def test_every_command_and_option_is_described() -> None:
    page = (ROOT / "docs" / "commands.md").read_text("utf-8")
    commands: list[tuple[str, click.Command]] = [("chapterverse", main)]
    for name, command in commands:
        if isinstance(command, click.Group):
            commands += [(f"{name} {part}", below) for part, below in command.commands.items()]
        section = page.split(f"## `{name}`\n")[1].split("\n## ")[0]
        for option in command.params:
            if isinstance(option, click.Option):
                assert option.opts[0] in section, f"{name} {option.opts[0]}"
