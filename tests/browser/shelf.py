"""A book made by the test, served without engines and with scripted answers."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from chapterverse.book import Fingerprint, Manifest, Page
from chapterverse.errors import ChapterverseError
from chapterverse.ingestion.composing import compose
from chapterverse.ingestion.document import Document
from chapterverse.ingestion.readers import read
from chapterverse.settings import Settings
from tests.scripted import Scripted, without_engines
from tests.served import Served, serve

ODD = """# Emoji 🤖 and friends

A robot 🤖🦾 says “más”. The second sentence 👩‍🚀 is cited. Then `code 🐍` and &lt;b&gt;without markup&lt;/b&gt;.

## Things &amp; &lt;i&gt;things&lt;/i&gt;

- outer one
  - inner 🧪 one
- outer two

> A quotation 💬 of somebody.

| what | how many |
|---|---|
| bars `a \\| b` | 🥇 one |

```python
print("🐍 [1]")  # <script>alert(1)</script>
```

## כותרת

הרובוט הוא מכונה.

- פריט

## Contents

The last words 🏁 of the page.
"""


@dataclass
class Shelf:
    """The part of an index that the reader page needs."""

    shelved: list[Page] = field(default_factory=list)
    failure: ChapterverseError | None = None
    hangs: bool = False

    async def manifest(self) -> Manifest:
        if self.failure:
            raise self.failure
        if self.hangs:
            await asyncio.Event().wait()
        return Manifest(Fingerprint("", 0, ""), "one", "", len(self.shelved), 0)

    async def pages(self) -> list[Page]:
        return self.shelved

    async def page(self, page_id: str) -> Page | None:
        return next((page for page in self.shelved if page.page_id == page_id), None)


def odd_page() -> Page:
    """A page with characters of several UTF-16 units and text that looks like markup."""
    document = Document("book/odd/emoji.md", "odd/emoji.md", "book", "markdown", ODD.encode())
    return compose(document, read(document)[0])


@contextmanager
def scripted_server(shelf: Shelf, scripted: Scripted, **settings: Any) -> Iterator[Served]:
    with serve(Settings.load(**settings), opening=without_engines(index=shelf), answering=scripted) as server:
        yield server
