from hypothesis import given
from hypothesis import strategies as st

from chapterverse.index import Filters
from chapterverse.index.filters import Clause, Match, exact_clauses, prefix_clause, prefix_scope
from chapterverse.index.points import ancestors

URL = st.text(alphabet="ab/.-_:", min_size=1, max_size=12)
ANCHOR = st.text(alphabet="ab-", max_size=3)


def holds(clause: Clause, chunk: dict[str, str]) -> bool:
    """Whether a chunk matches a clause, as an engine decides it."""
    fields = {name: [value] for name, value in chunk.items()} | {"ancestors": ancestors(chunk["page_url"])}
    return not clause or any(set(match.values) & set(fields[match.field]) for match in clause)


@given(pages=st.lists(st.tuples(URL, ANCHOR), max_size=6), prefix=st.text(alphabet="ab/.-_:#", min_size=1, max_size=14))
def test_prefix_filter_selects_the_same_chunks_as_startswith(pages: list[tuple[str, str]], prefix: str) -> None:
    chunks = [{"page_url": url, "source_url": f"{url}#{anchor}" if anchor else url} for url, anchor in pages]
    beginnings = [prefix, *(chunk["source_url"][:size] for chunk in chunks for size in (1, 4, 8))]
    for beginning in beginnings:
        scope = prefix_scope(beginning)
        values = {chunk[scope.field] for chunk in chunks if holds(scope.within, chunk)} if scope.field else set()
        clause = prefix_clause(beginning, scope, values)
        assert clause, "an empty clause would match everything"
        found = [chunk for chunk in chunks if holds(clause, chunk)]
        assert found == [chunk for chunk in chunks if chunk["source_url"].startswith(beginning)]


def test_exact_filters_become_clauses() -> None:
    assert exact_clauses(Filters()) == []
    assert exact_clauses(Filters(source_url=("u", "v"), module=("m",))) == [
        (Match("source_url", ("u", "v")), Match("page_url", ("u", "v"))),
        (Match("module", ("m",)),),
    ]
    assert exact_clauses(Filters(page_title=("t",), section_heading=("h",), source_url_prefix="p")) == [
        (Match("page_title", ("t",)),),
        (Match("section_heading", ("h",)),),
    ]
