import gzip

import pytest

from chapterverse.ingestion.sources import sitemap
from chapterverse.ingestion.sources.sitemap import parse_sitemap

HEAD = '<?xml version="1.0" encoding="UTF-8"?>'
SPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


def test_sitemap_lists_its_pages() -> None:
    xml = f"""{HEAD}<urlset {SPACE} xmlns:image="http://www.google.com/schemas/sitemap-image/1.1">
      <url><loc> https://example.org/a?x=1&amp;y=2 </loc><lastmod>2024-01-01</lastmod>
           <image:image><image:loc>https://example.org/picture.png</image:loc></image:image></url>
      <url><loc><![CDATA[https://example.org/b]]></loc></url>
    </urlset>""".encode()
    found = parse_sitemap(xml)
    assert found is not None
    assert found.pages == ["https://example.org/a?x=1&y=2", "https://example.org/b"]
    assert found.children == []
    assert found.is_complete
    assert parse_sitemap(gzip.compress(xml)) == found


def test_sitemap_index_and_empty_sitemap() -> None:
    found = parse_sitemap(
        f"<sitemapindex {SPACE}><sitemap><loc>https://x/1.xml</loc></sitemap></sitemapindex>".encode()
    )
    assert found is not None
    assert (found.pages, found.children, found.is_complete) == ([], ["https://x/1.xml"], True)
    empty = parse_sitemap(b"<urlset></urlset>")
    assert empty is not None
    assert empty.is_complete


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"not xml",
        b"<!doctype html><html><body>everything is this page</body></html>",
        b"<html><body/></html>",
        b"<rss><channel/></rss>",
        b"\x1f\x8bnot gzip",
        b"<?xml version='1.0' encoding='no-such'?><urlset/>",
    ],
)
def test_other_data_is_no_sitemap(data: bytes) -> None:
    assert parse_sitemap(data) is None


def test_truncated_sitemap_is_not_complete() -> None:
    xml = "<urlset><url><loc>https://x/a</loc></url><url><loc>https://x/b</l"
    found = parse_sitemap(xml.encode())
    assert found is not None
    assert (found.pages, found.is_complete) == (["https://x/a"], False)


def test_sitemap_with_entity_expansion_is_refused() -> None:
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    xml = f'<!DOCTYPE urlset [<!ENTITY e0 "x">{entities}]><urlset><url><loc>&e11;</loc></url></urlset>'
    assert parse_sitemap(xml.encode()) is None


def test_decompression_stops_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sitemap, "_MAX_BYTES", 1000)
    xml = b"<urlset><url><loc>https://x/a</loc></url>" + b" " * 10_000_000 + b"</urlset>"
    found = parse_sitemap(gzip.compress(xml))
    assert found is not None
    assert (found.pages, found.is_complete) == (["https://x/a"], False)
