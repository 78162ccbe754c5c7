"""The data of the bench as pages, and the sets if the data is there."""

from pathlib import Path

import pytest
from bench.retrieval import sets
from bench.retrieval.sets import DATA, DataMissing, corpora, plain_page

needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="no shared/data beside the repository")


def test_plain_page_has_exact_offsets() -> None:
    page = plain_page("doc#1", "Title", "\n\n first\nline \n\n\n\nsecond\n\n")
    assert [page.text[block.start : block.end] for block in page.blocks] == ["first\nline", "second"]
    assert page.text == "first\nline\n\nsecond"
    assert (page.sections[0].start, page.sections[0].end) == (0, len(page.text))


def test_missing_data_is_an_error_with_the_path(tmp_path: Path) -> None:
    with pytest.raises(DataMissing, match="nowhere"):
        next(corpora(data=tmp_path / "nowhere"))


@needs_data
@pytest.mark.parametrize(
    ("name", "documents", "questions"),
    [("squad", 347, [1581]), ("doc2dial", 136, [1936, 1936]), ("scifact", 5183, [809]), ("clapnq", 11021, [208, 208])],
)
def test_sets_have_the_expected_sizes(name: str, documents: int, questions: list[int]) -> None:
    corpus = next(corpora([name]))
    assert len(corpus.documents) == documents
    assert [len(one.questions) for one in corpus.sets] == questions
    for one in corpus.sets:
        assert one.questions.keys() == one.relevant.keys()
        assert all(document in corpus.documents for grades in one.relevant.values() for document in grades)


@needs_data
def test_history_is_the_earlier_questions_of_the_user() -> None:
    alone, after = sets.doc2dial(DATA).sets
    question = "dea7174409afbfe0af0ace21e7f318ae_7"
    said = after.questions[question].split("\n")
    assert len(said) == 3
    assert said[-1] == alone.questions[question]
    assert said[0].startswith("Don't do that")


@needs_data
@pytest.mark.slow
def test_equal_passages_are_one_document() -> None:
    corpus = sets.cloud(DATA)
    texts = [page.text for pages in corpus.documents.values() for page in pages]
    assert len(texts) == 11105
    assert all(name in corpus.documents for one in corpus.sets for grades in one.relevant.values() for name in grades)
