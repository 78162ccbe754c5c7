"""Writes `.env.example`, `docs/settings.md` and `docs/commands.md` from the code: `python -m tools.reference`.

With `--check` it writes nothing and fails if one of them differs from the code.
"""

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click
from pydantic.fields import FieldInfo

from chapterverse.cli import main as command_line
from chapterverse.settings import Settings

ROOT: Final = Path(__file__).resolve().parents[1]
# The first setting of each group -> the group's title.
GROUPS: Final = {
    "chapterverse_home": "Home",
    "gemini_api_key": "Language model",
    "embeddings": "Embeddings",
    "qdrant_url": "Vectors",
    "database_url": "Conversations and limits",
    "writer": "Answers",
    "judge": "Judge",
    "cors_origins": "HTTP",
    "book_title": "Reader page",
    "log_level": "Log",
}
_SETTINGS: Final = """# Settings

Settings come from the environment or from a `.env` file in the working folder. None is required: by default every part
runs on its embedded engine. [`.env.example`](../.env.example) is a template. `chapterverse doctor` shows the effect of
the settings. `python -m tools.reference` writes this page from `src/chapterverse/settings.py`.
"""
_COMMANDS: Final = """# Commands

`chapterverse COMMAND --help` prints the same text. `python -m tools.reference` writes this page from the code.
"""
_TYPES: Final = {"string": "text", "integer": "integer", "number": "number", "array": "list"}
_SCHEMA: Final[dict[str, Any]] = Settings.model_json_schema()["properties"]


def files() -> dict[str, str]:
    """The generated files with their contents."""
    return {".env.example": _example(), "docs/settings.md": _settings(), "docs/commands.md": _commands()}


def _example() -> str:
    lines = ["# Copy to .env and set what you need. Nothing is required: by default every part runs embedded."]
    for name, field in Settings.model_fields.items():
        lines += ["", f"# ── {GROUPS[name]}"] if name in GROUPS else []
        lines += [f"# {line}" for line in textwrap.wrap(str(field.description), 118)]
        lines.append(f"#{name.upper()}={_default(field)}")
    return "\n".join(lines) + "\n"


def _settings() -> str:
    lines = [_SETTINGS.rstrip()]
    for name, field in Settings.model_fields.items():
        if name in GROUPS:
            lines += ["", f"## {GROUPS[name]}", "", "| setting | type | default | meaning |", "|---|---|---|---|"]
        default = f"`{_default(field)}`" if _default(field) else ""
        lines.append(f"| `{name.upper()}` | {_type(name)} | {default} | {field.description} |")
    return "\n".join(lines) + "\n"


def _default(field: FieldInfo) -> str:
    return "" if field.default_factory or field.default in (None, ()) else str(field.default)


def _type(name: str) -> str:
    """The type of a setting in words, from its JSON schema."""
    schema = _SCHEMA[name]
    schema = schema | schema.get("anyOf", [{}])[0]
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    kind = {"path": "path", "password": "secret"}.get(schema.get("format"), _TYPES[schema["type"]])
    least, most = schema.get("minimum"), schema.get("maximum")
    bounds = f", {least:g} to {most:g}" if most is not None else f", at least {least:g}" if least is not None else ""
    return kind + bounds


def _commands() -> str:
    lines = [_COMMANDS.rstrip()]
    for name, command in _walk(command_line, "chapterverse"):
        settings: dict[str, Any] = {**command_line.context_settings, "terminal_width": 100}
        context = click.Context(command, info_name=name, **settings)
        lines += ["", f"## `{name}`", "", "```text", command.get_help(context), "```"]
    return "\n".join(lines) + "\n"


def _walk(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    yield name, command
    if isinstance(command, click.Group):
        for part, below in command.commands.items():
            yield from _walk(below, f"{name} {part}")


if __name__ == "__main__":
    changed = {path: text for path, text in files().items() if (ROOT / path).read_text("utf-8") != text}
    if "--check" in sys.argv and changed:
        sys.exit(f"{', '.join(changed)}: differs from the code. Run: python -m tools.reference")
    for path, text in changed.items():
        (ROOT / path).write_text(text, "utf-8")
