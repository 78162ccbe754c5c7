import pytest
from hypothesis import given
from hypothesis import strategies as st

from chapterverse.ingestion.sources.addresses import Site, identity, normalise


@pytest.mark.parametrize(
    ("url", "normalised"),
    [
        ("HTTP://Example.org:80/a#part", "http://example.org/a"),
        ("https://example.org:443", "https://example.org/"),
        ("https://example.org:8443/", "https://example.org:8443/"),
        ("http://example.org/a/../b/./c//d/", "http://example.org/b/c/d/"),
        ("http://example.org/../..", "http://example.org/"),
        ("http://example.org/.well-known/x", "http://example.org/.well-known/x"),
        ("http://example.org/a?utm_source=x&q=1&UTM_Medium=y&gclid=3&fbclid", "http://example.org/a?q=1"),
        ("http://example.org/a?&b", "http://example.org/a?b"),
        ("http://example.org/two words/%c3%bc", "http://example.org/two%20words/%C3%BC"),
        ("http://example.org/ü", "http://example.org/%C3%BC"),
        ("http://bücher.example/", "http://xn--bcher-kva.example/"),
        ("http://user:secret@example.org/", "http://example.org/"),
        ("http://[::1]:8000/a", "http://[::1]:8000/a"),
        ("  https://example.org/a\n", "https://example.org/a"),
        ("mailto:someone@example.org", ""),
        ("javascript:alert(1)", ""),
        ("/a/b", ""),
        ("", ""),
        ("http://", ""),
        ("http://[::1", ""),
        ("http://example.org:port/", ""),
        ("http://example.org/" + "a" * 3000, ""),
    ],
)
def test_addresses_are_normalised(url: str, normalised: str) -> None:
    assert normalise(url) == normalised


@given(st.text(alphabet="abcZ%ü /.?&=#:@[]5", max_size=40))
def test_normalising_twice_changes_nothing(tail: str) -> None:
    once = normalise(f"http://example.org/{tail}")
    assert normalise(once) == once
    assert "#" not in once
    assert once.isascii()


def test_identity_ignores_scheme_www_and_index_pages() -> None:
    same = [
        "https://example.org/docs",
        "http://www.example.org/docs/",
        "https://example.org/docs/index.html",
        "https://example.org/docs/index.htm",
    ]
    assert len({identity(url) for url in same}) == 1
    others = [
        "https://example.org/",
        "https://example.org/docs?page=2",
        "https://example.org/docs/a",
        "https://x.org/docs",
    ]
    assert len({identity(url) for url in [*others, same[0]]}) == 5


@pytest.mark.parametrize(
    ("start", "scope"),
    [
        ("https://example.org/", ""),
        ("https://example.org/docs/", "/docs"),
        ("https://example.org/docs", "/docs"),
        ("https://example.org/docs/index.html", "/docs"),
        ("https://example.org/book.pdf", ""),
        ("https://example.org/en/4.2", "/en/4.2"),
    ],
)
def test_scope_of_a_start_address(start: str, scope: str) -> None:
    assert Site.around(start) == Site("https://example.org", scope)


def test_place_accepts_only_addresses_of_the_site() -> None:
    site = Site("https://example.org", "/docs")
    assert site.place("http://www.example.org/docs/a?utm_source=x#y") == "https://example.org/docs/a"
    assert site.place("https://example.org/docs") == "https://example.org/docs"
    assert site.place("https://example.org/docs/a?page=2") == "https://example.org/docs/a?page=2"
    for outside in (
        "https://example.org/",
        "https://example.org/docs2",
        "https://example.org/docs/../blog",
        "https://sub.example.org/docs/a",
        "https://example.org.evil.example/docs/a",
        "https://example.org:8443/docs/a",
        "ftp://example.org/docs/a",
    ):
        assert site.place(outside) == ""
    assert site.path_of("https://example.org/docs/ros2/nodes/") == "ros2/nodes"
    assert site.path_of("https://example.org/docs/") == "index"
    assert site.path_of("https://example.org/docs/%E6%95%99/a") == "教/a"


def test_site_follows_a_redirected_start_page() -> None:
    site = Site("http://example.org", "/docs")
    assert site.moved("https://www.example.org/docs/intro") == Site("https://www.example.org", "/docs")
    assert site.moved("https://example.org/manual/index.html") == Site("https://example.org", "/manual")
