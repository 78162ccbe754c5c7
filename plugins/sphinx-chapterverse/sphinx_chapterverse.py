"""Puts the Chapterverse widget into every HTML page that Sphinx builds."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

__version__ = "0.1.0"

# Data attributes of the widget; `chapterverse_title` in conf.py is `data-title`, and so on.
OPTIONS = (
    *("title", "accent", "font", "logo", "suggestions", "module", "book", "version", "prefix"),
    *("theme", "position", "target"),
)
CHOICES = {"theme": ("auto", "light", "dark"), "position": ("right", "left")}


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.add_config_value("chapterverse_server", "", "html", str)
    for name in OPTIONS:
        is_list = name == "suggestions"
        app.add_config_value(f"chapterverse_{name}", [] if is_list else "", "html", (list, tuple) if is_list else str)
    app.connect("builder-inited", add_widget)
    return {"version": __version__, "parallel_read_safe": True, "parallel_write_safe": True}


def add_widget(app: Sphinx) -> None:
    """Add the script to the pages, if they are for a website: not to an EPUB or a help file."""
    if app.builder.format != "html" or getattr(app.builder, "embedded", False):
        return
    server = app.config.chapterverse_server
    if urlsplit(server).scheme not in {"http", "https"}:
        raise ExtensionError('chapterverse_server must be the address of a server, such as "https://ask.example.com"')
    for name, allowed in CHOICES.items():
        if (value := app.config[f"chapterverse_{name}"]) and value not in allowed:
            raise ExtensionError(f"chapterverse_{name} must be one of {', '.join(allowed)}, not {value!r}")
    values = {name: app.config[f"chapterverse_{name}"] for name in OPTIONS}
    values["suggestions"] = "|".join(values["suggestions"])
    attributes = {f"data-{name}": value for name, value in values.items() if value}
    app.add_js_file(f"{server.rstrip('/')}/widget.js", **{"async": "async", **attributes})
