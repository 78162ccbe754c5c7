from chapterverse.index.sparse import DEFAULTS, WordWeights


def test_words_meet_whatever_their_form_and_case() -> None:
    weights = WordWeights(DEFAULTS)
    question = weights.question("Which FERRETS were running?")
    document = weights.document("A ferret runs.")
    assert question is not None
    assert document is not None
    assert set(question.indices) & set(document.indices) == set(document.indices)
    assert len(document.indices) == 2


def test_a_text_without_words_has_no_weights() -> None:
    weights = WordWeights(DEFAULTS)
    for text in ("", "   ", "?!…", "the of and"):
        assert weights.question(text) is None
        assert weights.document(text) is None


def test_parameters_make_the_weights() -> None:
    text = "otter " * 5 + "and a burrow of many other words"
    plain, steep = WordWeights(DEFAULTS).document(text), WordWeights({**DEFAULTS, "k": 3.0}).document(text)
    assert plain is not None
    assert steep is not None
    assert plain.indices == steep.indices
    assert max(steep.values) > max(plain.values)


def test_any_text_can_be_weighed() -> None:
    weights = WordWeights(DEFAULTS)
    for text in ("naïve façade 日本語 \U0001f600", "a\x00b", "x" * 100_000, "\n\t"):
        weights.document(text)
        weights.question(text)
