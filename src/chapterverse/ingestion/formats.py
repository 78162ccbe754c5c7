"""Determines the format of a file or HTTP response by its name or content type."""

from pathlib import PurePosixPath
from typing import Final, Literal
from urllib.parse import urlsplit

from chapterverse import plugins
from chapterverse.ingestion.document import Format

BuiltInFormat = Literal["markdown", "mdx", "rst", "asciidoc", "html", "text", "epub", "pdf", "notebook", "docx"]

PACKED: Final = ("pdf", "epub", "docx")  # binary formats, whose text is compressed

_BY_EXTENSION: dict[str, BuiltInFormat] = {
    ".md": "markdown",
    ".markdown": "markdown",
    ".mdx": "mdx",
    ".rst": "rst",
    ".adoc": "asciidoc",
    ".asciidoc": "asciidoc",
    ".asc": "asciidoc",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".txt": "text",
    ".text": "text",
    ".epub": "epub",
    ".pdf": "pdf",
    ".ipynb": "notebook",
    ".docx": "docx",
}
_BY_CONTENT_TYPE: dict[str, BuiltInFormat] = {
    "text/html": "html",
    "application/xhtml+xml": "html",
    "text/markdown": "markdown",
    "text/x-markdown": "markdown",
    "text/x-rst": "rst",
    "application/pdf": "pdf",
    "application/epub+zip": "epub",
    "application/x-ipynb+json": "notebook",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
}
_VAGUE = ("", "text/plain", "application/octet-stream", "binary/octet-stream")  # for these, the file name decides


def format_of_file(name: str) -> Format | None:
    """The format of a file by its extension; None if there is no reader."""
    extension = PurePosixPath(name).suffix.lower()
    added = extension.removeprefix(".")
    return _BY_EXTENSION.get(extension) or (added if added in plugins.installed("reader") else None)


def readable_extensions() -> list[str]:
    """The extensions of files that can be read, including those of plug-ins."""
    return [*_BY_EXTENSION, *(f".{name}" for name in sorted(plugins.installed("reader")))]


def format_of_answer(url: str, content_type: str) -> Format | None:
    """The format of a response by its content type, or by its address if the content type is too general."""
    if content_type not in _VAGUE:
        return _BY_CONTENT_TYPE.get(content_type)
    return format_of_file(urlsplit(url).path) or ("text" if content_type == "text/plain" else None)
