import asyncio
import gzip
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from chapterverse.book import PageRecord
from chapterverse.errors import IngestionError
from chapterverse.ingestion.options import SourceOptions
from chapterverse.ingestion.sources.website import Website
from tests.ingestion.sources.site import QUICK, Answer, Handler, Outcomes, Request, collect, website
from tests.ingestion.sources.site import Website as Site


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with website() as running:
        yield running


async def read(
    site: Site, start: str = "/", options: SourceOptions = QUICK, known: dict[str, PageRecord] | None = None
) -> tuple[Website, Outcomes]:
    source = Website(site.origin + start, options)
    found = await asyncio.wait_for(collect(source.documents(known or {}), site.origin), 30)
    return source, found


def records_of(found: Outcomes) -> dict[str, PageRecord]:
    """The page records that an index would have after a run."""
    return {
        page.url: PageRecord("id", page.url, page.source, "hash", 1, page.etag, page.last_modified)
        for page in found.documents.values()
    }


def in_turn(*answers: Answer) -> Handler:
    """Returns these answers in order, then always the last one."""
    left = list(answers)

    async def handle(_: Request) -> Answer:
        return left.pop(0) if len(left) > 1 else left[0]

    return handle


async def test_sitemap_is_used_instead_of_links(site: Site) -> None:
    site.page("/", "/linked")
    for path in ("/a", "/b", "/linked"):
        site.page(path)
    site.sitemap("/", "/a", "/b", "/a#part", "https://elsewhere.example/x", "/a?utm_source=mail")
    source, found = await read(site)
    assert set(found.documents) == {"/", "/a", "/b"}
    assert source.complete
    assert site.count() == {"/robots.txt": 1, "/sitemap.xml": 1, "/": 1, "/a": 1, "/b": 1}
    page = found.documents["/a"]
    assert (page.url, page.path, page.source, page.format) == (f"{site.origin}/a", "a", site.origin, "html")
    assert b"<h1>/a</h1>" in page.data
    assert site.requests[0].headers["user-agent"] == "Chapterverse/0.1.0"


async def test_compressed_and_nested_sitemaps_from_robots_txt_are_read(site: Site) -> None:
    site.text(
        "/robots.txt", f"User-agent: *\nSitemap: {site.origin}/maps/index.xml\nSitemap: https://x.example/s.xml\n"
    )
    site.sitemap("/maps/1.xml.gz", "/maps/2.xml", "/maps/index.xml", at="/maps/index.xml", index=True)
    site.sitemap("/a", at="/maps/1.xml.gz", packed=True)
    site.sitemap("/b", at="/maps/2.xml")
    for path in ("/", "/a", "/b"):
        site.page(path)
    source, found = await read(site)
    assert set(found.documents) == {"/", "/a", "/b"}
    assert source.complete
    assert "/sitemap.xml" not in site.count()


async def test_project_below_the_root_uses_its_own_sitemap(site: Site) -> None:
    site.sitemap("/project/a", "/other/b", at="/project/sitemap.xml")
    site.sitemap("/project/wrong")
    for path in ("/project/", "/project/a", "/other/b"):
        site.page(path)
    source, found = await read(site, "/project/")
    assert set(found.documents) == {"/project/", "/project/a"}
    assert source.key == f"{site.origin}/project"


async def test_links_are_followed_if_a_sitemap_of_an_index_is_missing(site: Site) -> None:
    site.page("/", "/b")
    for path in ("/a", "/b"):
        site.page(path)
    site.sitemap("/1.xml", "/2.xml", index=True, at="/sitemap.xml")
    site.sitemap("/a", at="/1.xml")
    source, found = await read(site)
    assert set(found.documents) == {"/", "/a", "/b"}
    assert found.failed == {"/2.xml": "not a sitemap, but listed as one"}
    assert not source.complete


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (Answer(status=500), "the sitemap cannot be read: HTTP 500"),
        (Answer(b"<urlset><url><loc>h", content_type="text/xml"), "the sitemap is not valid XML; only"),
        (Answer(b"<urlset><url><loc>/a</loc></url><url><loc>/x?a&b</loc></url></urlset>"), "the sitemap is not valid"),
    ],
)
async def test_broken_sitemap_falls_back_to_links_and_is_incomplete(site: Site, broken: Answer, why: str) -> None:
    site.page("/", "/a", "/b")
    for path in ("/a", "/b"):
        site.page(path)
    site.routes["/sitemap.xml"] = replace(broken, body=broken.body.replace(b"<loc>/", f"<loc>{site.origin}/".encode()))
    source, found = await read(site)
    assert set(found.documents) == {"/", "/a", "/b"}
    assert found.failed["/sitemap.xml"].startswith(why)
    assert not source.complete
    site.routes["/sitemap.xml"] = Answer(b"<!doctype html><p>one page for all paths")
    source, found = await read(site)
    assert source.complete
    assert not found.failed


async def test_links_are_followed_breadth_first_inside_the_start_path(site: Site) -> None:
    site.page("/docs/", "a", "b#part", "/blog", "../", "https://elsewhere.example/", "mailto:x@y.z", "pic.png")
    site.page("/docs/a", "deep", "/docs/", "/docs/index.html")
    site.page("/docs/b", "/docs/a/", "a?utm_campaign=x")
    site.page("/docs/deep", "/docs2/x")
    source, found = await read(site, "/docs/", replace(QUICK, concurrency=1))
    assert list(found.documents) == ["/docs/", "/docs/a", "/docs/b", "/docs/deep"]
    assert found.skipped == found.failed == {}
    assert source.complete
    assert max(site.count().values()) == 1
    assert found.documents["/docs/"].path == "index"
    assert found.documents["/docs/deep"].path == "deep"


async def test_robots_txt_is_obeyed(site: Site) -> None:
    site.text("/robots.txt", "\ufeffUser-agent: chapterverse\nDisallow: /private\n\nUser-agent: *\nDisallow: /\n")
    site.page("/", "/private/x", "/a", "/way")
    site.page("/a")
    site.page("/private/x")
    site.redirect("/way", "/private/x")
    _, found = await read(site)
    assert set(found.documents) == {"/", "/a"}
    assert found.skipped == {"/private/x": "robots.txt", "/way": "robots.txt"}
    assert "/private/x" not in site.count()


async def test_site_that_disallows_everything_is_an_error(site: Site) -> None:
    site.text("/robots.txt", "User-agent: *\nDisallow: /\n")
    site.page("/")
    with pytest.raises(IngestionError, match=r"cannot be read: robots\.txt"):
        await read(site)
    assert set(site.count()) == {"/robots.txt"}


async def test_failing_robots_txt_forbids_everything_but_a_missing_one_does_not(site: Site) -> None:
    site.page("/")
    site.routes["/robots.txt"] = Answer(status=503)
    with pytest.raises(IngestionError, match=r"robots\.txt cannot be read \(HTTP 503\); try again later") as caught:
        await read(site)
    assert caught.value.retryable
    assert "/" not in site.count()
    site.routes["/robots.txt"] = Answer(status=403)
    assert set((await read(site))[1].documents) == {"/"}


async def test_start_of_a_large_robots_txt_is_obeyed(site: Site) -> None:
    rules = "User-agent: *\nDisallow: /private\n" + "# a comment\n" * 50_000 + "Disallow: /a\n"
    site.text("/robots.txt", rules)
    site.page("/", "/private/x", "/a")
    site.page("/a")
    site.page("/private/x")
    _, found = await read(site)
    assert set(found.documents) == {"/", "/a"}
    assert found.skipped == {"/private/x": "robots.txt"}
    # the limit cuts `/private` off in its middle
    site.text("/robots.txt", f"User-agent: *\nAllow: {'x' * 511_967}\nDisallow: /private\n")
    assert set((await read(site))[1].documents) == {"/", "/a", "/private/x"}


async def test_crawl_delay_is_kept_between_requests(site: Site) -> None:
    site.text("/robots.txt", "User-agent: *\nCrawl-delay: 0.05\n")
    site.page("/", "/a", "/b", "/c")
    for path in ("/a", "/b", "/c"):
        site.page(path)
    began = asyncio.get_running_loop().time()
    _, found = await read(site)
    assert len(found.documents) == 4
    assert asyncio.get_running_loop().time() - began >= 4 * 0.05  # start, sitemap and three pages after the first


async def test_concurrency_is_limited(site: Site) -> None:
    barrier = asyncio.Barrier(3)

    async def together(request: Request) -> Answer:
        await barrier.wait()  # returns only if three requests wait at once
        return Answer(b"<h1>x</h1>")

    paths = [f"/{number}" for number in range(12)]
    site.page("/")
    site.sitemap(*paths)
    site.routes.update(dict.fromkeys(paths, together))
    _, found = await read(site, options=replace(QUICK, concurrency=3))
    assert len(found.documents) == 13
    assert site.peak == 3


async def test_unchanged_pages_are_reported_without_their_content(site: Site) -> None:
    site.sitemap("/a", "/b", "/c", "/moved")
    site.page("/", etag='"start"')
    site.page("/a", etag='"1"')
    site.page("/b", etag='"1"')
    site.page("/d", etag='"d"')
    site.redirect("/moved", "/d")

    async def dated(request: Request) -> Answer:
        date = "Mon, 01 Jan 2024 00:00:00 GMT"
        if request.headers.get("if-modified-since") == date:
            return Answer(status=304)
        return Answer(b"<h1>c</h1>", headers={"Last-Modified": date})

    site.routes["/c"] = dated
    _, first = await read(site)
    assert set(first.documents) == {"/", "/a", "/b", "/c", "/d"}
    site.page("/b", text="new", etag='"2"')
    source, second = await read(site, known=records_of(first))
    assert second.unchanged == {"/a", "/c", "/d"}
    assert set(second.documents) == {"/", "/b"}  # the start page is always read
    assert source.complete


async def test_pages_are_read_again_with_another_module_or_after_an_invalid_etag(site: Site) -> None:
    site.page("/", etag='"1"')
    site.page("/a", etag='"1"')
    site.sitemap("/a")
    _, first = await read(site)
    _, second = await read(site, options=replace(QUICK, module="ros2"), known=records_of(first))
    assert second.documents["/a"].module == "ros2"
    _, third = await read(site, known=records_of(second))
    assert third.documents["/a"].module == ""
    wrong = {url: replace(record, etag='"é"') for url, record in records_of(first).items()}
    assert "/a" in (await read(site, known=wrong))[1].documents


async def test_pages_linked_only_from_a_refused_page_are_kept(site: Site) -> None:
    site.page("/", "/toc", "/github")
    site.page("/toc", "/a")
    site.page("/a")
    site.redirect("/github", "https://github.example/")
    source, first = await read(site)
    assert source.complete
    site.redirect("/toc", "https://status.example/", 302)
    source, found = await read(site, known=records_of(first))
    assert set(found.skipped) == {"/toc", "/github"}
    assert not source.complete


async def test_pages_that_failed_are_found_again_through_unchanged_pages(site: Site) -> None:
    site.page("/", "/a", etag='"1"')
    site.page("/a", "/b", etag='"1"')
    site.page("/b", etag='"1"')
    site.routes["/b"] = Answer(status=500)
    source, first = await read(site)
    assert first.failed == {"/b": "HTTP 500"}
    assert not source.complete  # pages linked from it are unknown
    site.page("/b", etag='"1"')
    source, second = await read(site, known=records_of(first))
    assert set(second.documents) == {"/", "/a", "/b"}
    assert source.complete


async def test_deleted_page_is_not_reported(site: Site) -> None:
    site.page("/")
    site.page("/a")
    site.page("/b")
    site.sitemap("/a", "/b", "/never")
    _, first = await read(site)
    assert first.failed == {"/never": "HTTP 404"}
    site.routes["/b"] = Answer(status=410)
    source, second = await read(site, known=records_of(first))
    assert set(second.documents) == {"/", "/a"}
    assert second.failed == {"/never": "HTTP 404"}
    assert second.skipped == {}
    assert source.complete


async def test_404_for_all_known_pages_makes_the_source_incomplete(site: Site) -> None:
    site.page("/")
    site.sitemap("/a", "/b", "/c")
    for path in ("/a", "/b", "/c"):
        site.page(path)
    _, first = await read(site)
    for path in ("/a", "/b", "/c"):
        del site.routes[path]
    source, _ = await read(site, known=records_of(first))
    assert not source.complete


async def test_redirects_inside_the_site_are_followed(site: Site) -> None:
    site.page("/", "/old", "/twin", "/away", "/out", "/loop", "/long0", "/bad")
    site.page("/new")
    site.redirect("/old", "new", 302)
    site.redirect("/twin", "/", 308)
    site.redirect("/away", "https://elsewhere.example/x")
    site.redirect("/out", "ftp://127.0.0.1/x")
    site.redirect("/loop", "/loop")
    site.redirect("/bad", "http://[broken")
    for hop in range(5):
        site.redirect(f"/long{hop}", f"/long{hop + 1}")
    site.page("/long5")
    _, found = await read(site)
    assert set(found.documents) == {"/", "/new", "/long5"}
    assert found.skipped == {
        "/twin": f"same page as {site.origin}/",
        "/away": "redirects to another site: https://elsewhere.example/x",
        "/out": "redirects to another site: ftp://127.0.0.1/x",
        "/bad": "redirects to another site: http://[broken",
    }
    assert found.failed == {"/loop": "more than 5 redirects"}
    assert site.count()["/loop"] == 6


async def test_redirect_out_of_the_start_path_is_skipped(site: Site) -> None:
    site.page("/docs/", "/docs/a")
    site.redirect("/docs/a", "/login")
    site.page("/login")
    _, found = await read(site, "/docs/")
    assert found.skipped == {"/docs/a": f"redirects out of the part that is read: {site.origin}/login"}


async def test_redirected_start_page_moves_the_scope(site: Site) -> None:
    site.redirect("/manual", "/docs/intro.html")
    site.page("/docs/intro.html", "/docs/a", "/manual/x")
    site.page("/docs/a")
    source, found = await read(site, "/manual")
    assert set(found.documents) == {"/docs/intro.html", "/docs/a"}
    assert source.key == f"{site.origin}/manual"


async def test_canonical_copies_are_read_once(site: Site) -> None:
    def copy_of(path: str) -> str:
        return f'<link rel="canonical" href="{path}">'

    site.page("/", "/a", "/a/print", "/wrong", "/alone")
    site.page("/a", head=copy_of(f"{site.origin}/a"))
    site.page("/a/print", head=copy_of("/a"))
    site.page("/wrong", head=copy_of("/"))  # a common mistake: the start page as canonical of every page
    site.page("/alone", head=copy_of("https://production.example/alone"))
    _, found = await read(site)
    assert set(found.documents) == {"/", "/a", "/wrong", "/alone"}
    assert found.skipped == {"/a/print": f"same page as {site.origin}/a"}


@pytest.mark.parametrize("first", ["/v1", "/v2"])
async def test_copy_of_a_page_that_is_not_read_is_read(site: Site, first: str) -> None:
    def canonical(path: str) -> str:
        return f'<link rel="canonical" href="{path}">'

    linked = ["/excluded", "/forbidden", "/gone", "/pretty", "/new"]
    site.page("/", first, "/v1", "/v2", *(f"/copy{path}" for path in linked), *(f"{path}.html" for path in linked))
    site.page("/v1", head=canonical("/v2"))
    site.page("/v2", head=canonical("/v1"))
    for path in linked:
        site.page(f"/copy{path}", head=canonical(f"{path}.html"))
    site.redirect("/pretty.html", "/pretty")
    site.page("/pretty", "/new", head=canonical("/pretty.html"))
    site.redirect("/new.html", "/new")
    site.page("/new", head=canonical("/new.html"))
    site.text("/robots.txt", "User-agent: *\nDisallow: /forbidden")
    source, found = await read(site, options=replace(QUICK, exclude=("excluded*",)))
    copies = {f"/copy{path}" for path in linked[:3]}
    assert set(found.documents) - {"/v1", "/v2"} == {"/", "/pretty", "/new", *copies}
    assert len({"/v1", "/v2"} & set(found.documents)) == 1
    assert found.skipped.keys() - {"/v1", "/v2"} == {"/excluded.html", "/forbidden.html", "/copy/pretty", "/copy/new"}
    assert source.complete


async def test_content_type_and_extension_give_the_format(site: Site) -> None:
    html = "<h1>Bücher</h1>"
    site.page(
        "/", *(f"/{name}" for name in ("m", "n.md", "t", "book.pdf", "e", "data", "none", "latin", "pic", "x.rst"))
    )
    site.routes["/m"] = Answer(b"# M", content_type="text/markdown; charset=utf-8")
    site.text("/n.md", "# N")
    site.text("/t", "T")
    site.text("/x.rst", "X")
    site.routes["/book.pdf"] = Answer(b"%PDF", content_type="application/octet-stream")
    site.routes["/e"] = Answer(b"PK", content_type="application/epub+zip")
    site.routes["/data"] = Answer(b"{}", content_type="application/json")
    site.routes["/none"] = Answer(b"?", content_type="")
    site.routes["/pic"] = Answer(b"\x89PNG", content_type="image/png")
    site.routes["/latin"] = Answer(html.encode("latin-1"), content_type="text/html; charset=ISO-8859-1")
    _, found = await read(site)
    assert {path: page.format for path, page in found.documents.items()} == {
        "/": "html",
        "/m": "markdown",
        "/n.md": "markdown",
        "/t": "text",
        "/x.rst": "rst",
        "/book.pdf": "pdf",
        "/e": "epub",
        "/latin": "html",
    }
    assert found.skipped == {
        "/data": "not a page: application/json",
        "/none": "not a page: no content type",
        "/pic": "not a page: image/png",
    }
    assert found.documents["/latin"].data.decode() == html


async def test_declared_encodings_are_converted_if_valid(site: Site) -> None:
    latin = "text/html; charset=ISO-8859-1"
    names_itself = '<meta charset="utf-8"><p>Bücher</p>'.encode()
    russian = '<script charset="utf-8"></script><p>Текст книги'
    site.page("/", "/page", "/plain", "/odd", "/wrong", "/default", "/script")
    site.routes["/page"] = Answer(names_itself, content_type=latin)  # the meta tag wins over the header
    site.routes["/plain"] = Answer("Bücher".encode("latin-1"), content_type="text/plain; charset=latin-1")
    site.routes["/odd"] = Answer("<p>Bücher".encode(), content_type="text/html; charset=no-such")
    site.routes["/wrong"] = Answer("<p>Bücher".encode("latin-1"), content_type="text/html; charset=utf-8")
    site.routes["/default"] = Answer("# Bücher".encode(), content_type="text/markdown; charset=iso-8859-1")
    site.routes["/script"] = Answer(russian.encode("cp1251"), content_type="text/html; charset=windows-1251")
    _, found = await read(site)
    assert found.documents["/default"].data == "# Bücher".encode()
    assert found.documents["/script"].data == russian.encode()
    assert found.documents["/page"].data == names_itself
    assert found.documents["/plain"].data == "Bücher".encode()
    assert found.documents["/odd"].data == "<p>Bücher".encode()
    assert found.documents["/wrong"].data == "<p>Bücher".encode("latin-1")


@pytest.mark.parametrize("name", ["a.docx", "a.epub", "a.pdf"])
async def test_packed_files_are_not_converted(site: Site, name: str) -> None:
    data = bytes(range(256))
    site.routes[f"/{name}"] = Answer(data, content_type="application/octet-stream; charset=ISO-8859-1")
    site.sitemap(f"/{name}")
    site.page("/")
    assert (await read(site))[1].documents[f"/{name}"].data == data


async def test_unparsable_page_does_not_stop_the_crawl(site: Site) -> None:
    site.page("/", "/deep", "/a")
    site.page("/a")
    site.routes["/deep"] = Answer(b"<div>" * 100_000 + b'<a href="/b">b</a>')
    source, found = await read(site)
    assert set(found.documents) == {"/", "/deep", "/a"}  # refused later by its reader
    assert not source.complete


async def test_start_address_of_a_pdf_reads_only_that_file(site: Site) -> None:
    site.routes["/shelf/book.pdf"] = Answer(b"%PDF", content_type="application/pdf")
    site.sitemap("/shelf/other")
    site.page("/shelf/other")
    source, found = await read(site, "/shelf/book.pdf")
    assert set(found.documents) == {"/shelf/book.pdf"}
    assert source.complete


async def test_large_responses_are_aborted_and_skipped(site: Site) -> None:
    sent = 0

    def endless() -> Iterator[bytes]:
        nonlocal sent
        while True:
            sent += 1
            yield b"x" * 65536

    bomb = gzip.compress(b"<p>" + b" " * 50_000_000)
    site.page("/", "/endless", "/bomb", "/declared", "/double")
    site.routes["/endless"] = Answer(stream=endless())
    site.routes["/bomb"] = Answer(bomb, headers={"Content-Encoding": "gzip"})
    site.routes["/double"] = Answer(gzip.compress(bomb), headers={"Content-Encoding": "gzip, gzip"})
    site.routes["/declared"] = Answer(b"x" * 2_000_000)
    _, found = await read(site, options=replace(QUICK, max_bytes=1_000_000))
    assert set(found.documents) == {"/"}
    assert found.skipped == {
        "/endless": "over the limit of 1 MB",
        "/bomb": "over the limit of 1 MB",
        "/double": "over the limit of 1 MB",
        "/declared": "2.0 MB, over the limit of 1 MB",
    }
    assert sent < 1000


async def test_response_with_invalid_encoding_fails(site: Site) -> None:
    site.page("/", "/gzip")
    site.routes["/gzip"] = Answer(b"not gzip", headers={"Content-Encoding": "gzip"})
    _, found = await read(site)
    assert found.failed["/gzip"].startswith("broken answer: ")


async def test_temporary_failures_are_retried(site: Site) -> None:
    good = Answer(b"<h1>good</h1>")
    soon = format_datetime(datetime.now(UTC) - timedelta(seconds=5), usegmt=True)
    site.page("/", "/busy", "/error", "/dated", "/dead", "/later")
    site.routes["/busy"] = in_turn(Answer(status=429, headers={"Retry-After": "0"}), good)
    site.routes["/error"] = in_turn(Answer(status=500), Answer(status=502), good)
    site.routes["/dated"] = in_turn(Answer(status=503, headers={"Retry-After": soon}), good)
    site.routes["/dead"] = Answer(status=500)
    site.routes["/later"] = Answer(status=429, headers={"Retry-After": "3600"})
    _, found = await read(site)
    assert set(found.documents) == {"/", "/busy", "/error", "/dated"}
    assert found.failed == {"/dead": "HTTP 500", "/later": "HTTP 429, asks to wait 3600 s"}
    assert site.count()["/dead"] == 3
    assert site.count()["/later"] == 1


@pytest.mark.slow
async def test_retry_after_is_honoured(site: Site) -> None:
    times: list[float] = []

    async def busy_once(_: Request) -> Answer:
        times.append(asyncio.get_running_loop().time())
        return Answer(status=429, headers={"Retry-After": "1"}) if len(times) == 1 else Answer(b"<h1>x</h1>")

    site.page("/", "/a")
    site.routes["/a"] = busy_once
    _, found = await read(site)
    assert set(found.documents) == {"/", "/a"}
    assert times[1] - times[0] >= 1.0


async def test_slow_pages_time_out(site: Site) -> None:
    forever = asyncio.Event()

    async def hang(_: Request) -> Answer:
        await forever.wait()
        return Answer()

    site.page("/", "/hang", "/a")
    site.page("/a")
    site.routes["/hang"] = hang
    _, found = await read(site, options=replace(QUICK, page_timeout=0.1))
    assert set(found.documents) == {"/", "/a"}
    assert found.failed == {"/hang": "timed out"}
    assert site.count()["/hang"] == 3


@pytest.mark.slow
async def test_crawl_stops_after_too_many_failures(site: Site) -> None:
    site.page("/")
    site.sitemap(*(f"/dead/{number}" for number in range(10_000)))
    source, found = await read(site)
    assert set(found.documents) == {"/"}
    assert not source.complete
    assert 200 <= len(site.requests) < 220
    reasons = [why for why in found.failed.values() if why != "HTTP 404"]
    assert len(reasons) == 1
    assert reasons[0].startswith("the site fails too often, stopped; 9,")
    assert len(found.failed) == sum(path.startswith("/dead") for path in site.count()) + 1  # every request is reported


@pytest.mark.slow
async def test_success_resets_the_failure_count(site: Site) -> None:
    site.page("/")
    site.page("/good")
    dead = [f"/dead/{number}" for number in range(300)]
    site.sitemap(*dead[:150], "/good", *dead[150:])
    _, found = await read(site, options=replace(QUICK, concurrency=1))
    assert len(found.failed) == 300


async def test_max_pages_limits_the_crawl(site: Site) -> None:
    site.page("/")
    site.sitemap(*(f"/{number}" for number in range(50)))
    for number in range(50):
        site.page(f"/{number}")
    source, found = await read(site, options=replace(QUICK, max_pages=10))
    assert len(found.documents) == 10
    assert list(found.skipped.values()) == ["limit of 10 pages reached; 41 pages were not read"]
    assert not source.complete


async def test_max_pages_ends_an_endless_site(site: Site) -> None:
    async def more(request: Request) -> Answer:
        links = "".join(f'<a href="{request.path.rstrip("/")}/{number}">x</a>' for number in range(9))
        return Answer(f"<body>{links}</body>".encode())

    class Everywhere(dict[str, Any]):
        def get(self, key: str, default: Any = None) -> Any:
            return more if "." not in key else default

    site.routes = Everywhere()
    source, found = await read(site, options=replace(QUICK, max_pages=30))
    assert len(found.documents) == 30
    assert not source.complete


async def test_include_and_exclude_patterns(site: Site) -> None:
    site.page("/", "/docs/a", "/docs/old/b", "/blog/c")
    for path in ("/docs/a", "/docs/old/b", "/blog/c"):
        site.page(path)
    source, found = await read(site, options=replace(QUICK, include=("docs/*",), exclude=("*/old/*",)))
    assert set(found.documents) == {"/docs/a"}
    assert found.skipped == {"/": "excluded", "/docs/old/b": "excluded", "/blog/c": "excluded"}
    assert source.complete
    assert "/blog/c" not in site.count()


async def test_missing_start_page_is_an_error_unless_there_is_a_sitemap(site: Site) -> None:
    with pytest.raises(IngestionError, match=r"/docs cannot be read: HTTP 404"):
        await read(site, "/docs")
    site.sitemap("/docs/a")
    site.page("/docs/a")
    source, found = await read(site, "/docs")  # many sites have no page at the folder's address
    assert set(found.documents) == {"/docs/a"}
    assert source.complete


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Answer(status=500), "HTTP 500"),
        (Answer(status=302, headers={"Location": "https://elsewhere.example/"}), "redirects to another site"),
        (Answer(b"{}", content_type="application/json"), "not a page: application/json"),
    ],
)
async def test_unreadable_start_page_is_an_error(site: Site, answer: Answer, reason: str) -> None:
    site.routes["/"] = answer
    with pytest.raises(IngestionError, match=f"cannot be read: {reason}"):
        await read(site)


async def test_unreachable_site_is_a_retryable_error() -> None:
    async with website() as gone:
        pass
    with pytest.raises(IngestionError, match=r"http://127\.0\.0\.1:\d+ cannot be reached: cannot connect") as caught:
        await read(gone)
    assert caught.value.retryable


async def test_private_site_is_refused_with_a_hint(site: Site) -> None:
    site.page("/")
    with pytest.raises(IngestionError, match=r"127\.0\.0\.1 is a private address; use --allow-private"):
        await read(site, options=replace(QUICK, allow_private=False))
    assert site.requests == []


async def test_stopping_early_closes_connections_and_tasks(site: Site) -> None:
    forever = asyncio.Event()
    waiting = asyncio.Event()

    async def hang(_: Request) -> Answer:
        waiting.set()
        await forever.wait()
        return Answer()

    site.page("/")
    site.sitemap("/a", *(f"/hang/{number}" for number in range(10)))
    site.page("/a")
    site.routes.update({f"/hang/{number}": hang for number in range(10)})
    source = Website(f"{site.origin}/", QUICK)
    before = asyncio.all_tasks()
    async with aclosing(source.documents({})) as pages:
        async for page in pages:
            if page.url.endswith("/a"):
                await waiting.wait()
                break
    forever.set()
    await asyncio.wait_for(site.idle.wait(), 5)
    assert {task for task in asyncio.all_tasks() - before if "serve" not in repr(task)} == set()
    assert not source.complete


async def test_cancelling_closes_connections_and_tasks(site: Site) -> None:
    forever = asyncio.Event()
    waiting = asyncio.Event()

    async def hang(_: Request) -> Answer:
        waiting.set()
        await forever.wait()
        return Answer()

    site.page("/")
    site.sitemap("/hang")
    site.routes["/hang"] = hang
    source = Website(f"{site.origin}/", QUICK)
    before = asyncio.all_tasks()
    run = asyncio.create_task(collect(source.documents({})))
    await waiting.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    forever.set()
    await asyncio.wait_for(site.idle.wait(), 5)
    assert {task for task in asyncio.all_tasks() - before if "serve" not in repr(task)} == set()


async def test_only_pages_listed_in_llms_txt_are_read(site: Site) -> None:
    text = "# Book\n\n> About\n\n## Docs\n\n- [A](/docs/a.md): first\n- [B](b)\n- [Out](https://elsewhere.example/x)\n"
    site.routes["/docs/llms.txt"] = Answer(text.encode(), content_type="text/plain")
    site.routes["/docs/a.md"] = Answer(b"# A\n\nText.", content_type="text/markdown")
    site.page("/docs/b", "/docs/c")
    site.page("/docs/c")
    source, found = await read(site, "/docs/llms.txt")
    assert set(found.documents) == {"/docs/a.md", "/docs/b"}
    assert found.documents["/docs/a.md"].format == "markdown"
    assert source.complete
    site.routes["/llms.txt"] = Answer(b"nothing here", content_type="text/plain")
    with pytest.raises(IngestionError, match="lists no page of its own site"):
        await read(site, "/llms.txt")


async def test_disallowed_pages_are_reported_also_with_a_sitemap(site: Site) -> None:
    site.text("/robots.txt", f"User-agent: *\nDisallow: /private\nSitemap: {site.origin}/sitemap.xml\n")
    site.page("/", "/private/linked", "/a")
    site.page("/a", "/private/deeper", "/private/linked")
    site.sitemap("/", "/a", "/private/listed")
    source, found = await read(site)
    assert set(found.documents) == {"/", "/a"}
    assert found.skipped == dict.fromkeys(("/private/linked", "/private/deeper", "/private/listed"), "robots.txt")
    assert source.complete


async def test_disallowed_start_page_is_reported(site: Site) -> None:
    site.text("/robots.txt", f"User-agent: *\nDisallow: /start$\nSitemap: {site.origin}/sitemap.xml\n")
    site.page("/start")
    site.page("/start/a")
    site.sitemap("/start/a")
    _, found = await read(site, "/start")
    assert set(found.documents) == {"/start/a"}
    assert found.skipped == {"/start": "robots.txt"}
