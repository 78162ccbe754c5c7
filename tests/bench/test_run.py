"""A small run of the retrieval bench through the real embedder and the real index."""

from pathlib import Path

import pytest
from bench.retrieval.run import Line, comparison, measure, read_table, table
from bench.retrieval.sets import Corpus, RetrievalSet, plain_page
from bench.retrieval.vectors import VectorCache

from chapterverse.embeddings.local import LocalEmbedder

_TEXTS = {
    "moon": "The Moon goes around the Earth once in about four weeks and always shows the same side.",
    "bread": "Flour, water, salt and yeast are kneaded, left to rise and baked into a loaf.",
    "port": "Set the option `listen_port` to 8443 and restart the daemon.",
}
_QUESTIONS = {"moon": "our natural satellite's orbit", "bread": "how is bread baked", "port": "listen_port"}


@pytest.mark.slow
async def test_corpus_is_indexed_and_measured(tmp_path: Path) -> None:
    documents = {name: (plain_page(name, "", text),) for name, text in _TEXTS.items()}
    relevant = {name: {name: 1.0} for name in _TEXTS}
    corpus = Corpus("small", documents, (RetrievalSet("Small", "hit", 1, _QUESTIONS, relevant),))
    embedder = LocalEmbedder(1)
    with VectorCache(tmp_path / "vectors.sqlite", embedder) as vectors:
        (line,) = await measure(corpus, vectors, embedder.window)
        assert vectors.embedded == 6
        again = await measure(corpus, vectors, embedder.window)
        assert vectors.embedded == 6, "the second run embeds nothing"
        (read,) = await measure(corpus, vectors, embedder.window, read=2)
    await embedder.close()
    assert again == [line]
    assert (line.questions, line.ours, line.dense) == (3, 1.0, 1.0)
    assert line.bm25 == pytest.approx(2 / 3), "no word of the first question is in its text"
    assert line.gain == 0.0
    assert line.first == 1.0
    assert line.first_bm25 == pytest.approx(2 / 3)
    assert line.scores == {"moon": 1.0, "bread": 1.0, "port": 1.0}
    assert line.read == {}
    assert read.scores == line.scores
    assert read.read == read.read_firsts == line.scores


def test_table_has_the_average_gain_and_the_worst_set() -> None:
    first = Line("A nDCG@10", 10, 0.5, 0.6, 0.6, 0.7, (0.6, 0.8), 0.1, (0.0, 0.2))
    second = Line("B hit@1", 20, 0.5, 0.4, 0.5, 0.48, (0.4, 0.6), -0.02, (-0.1, 0.1))
    rows = table([first, second]).split("\n")
    assert len(rows) == 4
    assert "+10.0" in rows[1]
    assert "gain +4.00 points, worst set -2.00" in rows[3]


def test_section_reader_is_compared_only_on_questions_it_read() -> None:
    line = Line(
        "A hit@1", 3, 0.5, 0.5, 0.5, 0.5, (0, 1), 0.0, (0, 1),
        scores={"a": 0.0, "b": 1.0, "c": 0.0}, firsts={"a": 0.0, "b": 1.0, "c": 0.0},
        read={"a": 1.0, "b": 1.0}, read_firsts={"a": 1.0, "b": 1.0},
    )  # fmt: skip
    rows = read_table([line]).split("\n")
    assert "    2  0.500  1.000 +50.0" in rows[1]
    assert rows[2] == "average +50.00, worst set +50.00"


def test_run_is_compared_with_an_earlier_one_per_question() -> None:
    now = Line("A hit@1", 4, 0.5, 0.5, 0.5, 0.75, (0, 1), 0.25, (0, 1), scores={"a": 1.0, "b": 1.0, "c": 1.0, "d": 0.0})
    bare = Line("B hit@1", 4, 0.5, 0.5, 0.5, 0.5, (0, 1), 0.0, (0, 1))
    then = [
        {"label": "A hit@1", "ours": 0.5, "scores": {"a": 1.0, "b": 1.0, "c": 0.0, "d": 0.0}},
        {"label": "B hit@1", "ours": 0.6},
    ]
    rows = comparison([now, bare], {"sets": then}).split("\n")
    assert "+25.0  +0.0 to +75.0" in rows[0]
    assert "-10.0  not paired" in rows[1]
    assert rows[2] == "average +7.50, worst set -10.00"
