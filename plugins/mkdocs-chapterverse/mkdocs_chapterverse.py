"""Puts the Chapterverse widget into every page of a MkDocs site."""

from __future__ import annotations

from html import escape
from typing import Any

from mkdocs.config import base
from mkdocs.config import config_options as c
from mkdocs.plugins import BasePlugin


class Options(base.Config):
    """What may stand below `chapterverse:` in `mkdocs.yml`. Each but `server` is a data attribute of the widget."""

    server = c.URL()
    title = c.Optional(c.Type(str))
    accent = c.Optional(c.Type(str))
    font = c.Optional(c.Type(str))
    logo = c.Optional(c.Type(str))
    suggestions = c.ListOfItems(c.Type(str), default=[])
    module = c.Optional(c.Type(str))
    book = c.Optional(c.Type(str))
    version = c.Optional(c.Type(str))
    prefix = c.Optional(c.Type(str))
    theme = c.Optional(c.Choice(("auto", "light", "dark")))
    position = c.Optional(c.Choice(("right", "left")))
    target = c.Optional(c.Type(str))


class ChapterversePlugin(BasePlugin[Options]):
    """Adds one script tag at the end of each page."""

    def on_post_page(self, output: str, **_: Any) -> str:
        """A page of the documentation."""
        return self._with_widget(output)

    def on_post_template(self, output_content: str, template_name: str, **_: Any) -> str:
        """A page of the theme, such as 404.html."""
        return self._with_widget(output_content) if template_name.endswith(".html") else output_content

    def _with_widget(self, html: str) -> str:
        before, end, after = html.rpartition("</body>")
        return f"{before}{self._tag()}\n{end}{after}" if end else html

    def _tag(self) -> str:
        options = {**self.config, "suggestions": "|".join(self.config.suggestions)}
        server = options.pop("server").rstrip("/")
        data = "".join(f' data-{name}="{escape(value)}"' for name, value in options.items() if value)
        return f'<script src="{escape(server)}/widget.js" async{data}></script>'
