"""Whatever the model writes, nothing reaches the reader that the passages do not say."""

import random
import re
from collections import Counter

import pytest

from chapterverse.grounding import MAX_SHOWN, Grounder, Passage, Rules, Shown
from chapterverse.grounding import markers as marks
from tests.grounding.hostile import ORDER, TOPICS, Answer, answers, passages

ALL = list(answers())
LIES = {lie for topic in TOPICS for _, lie in topic.false}


def plain(text: str) -> str:
    return " ".join(marks.remove(text)[0].strip().removeprefix("- ").split())


def run(text: str, issued: list[Passage], seed: int = 0) -> tuple[Grounder, list[Shown]]:
    rng = random.Random(seed)
    grounder = Grounder(issued)
    shown: list[Shown] = []
    at = 0
    while at < len(text):
        size = rng.choice((1, 3, 7, 40))
        shown += [result for result in grounder.feed(text[at : at + size]) if isinstance(result, Shown)]
        at += size
    shown += [result for result in grounder.finish() if isinstance(result, Shown)]
    return grounder, shown


def test_there_are_enough_answers() -> None:
    assert len(ALL) >= 300
    assert len({answer.kind for answer in ALL}) >= 30


@pytest.mark.parametrize("kind", sorted({answer.kind for answer in ALL}))
def test_nothing_unsupported_is_shown(kind: str) -> None:
    """A shown sentence is one that was labelled true by hand, or stands in a passage word for word."""
    issued = passages()
    book = [" ".join(passage.text.split()) for passage in issued]
    for number, answer in enumerate(one for one in ALL if one.kind == kind):
        grounder, shown = run(answer.text, issued, number)
        assert len(shown) <= MAX_SHOWN
        for result in shown:
            sentence = plain(result.text)
            assert sentence in answer.true or any(sentence in text for text in book), (answer.kind, sentence)
            assert sentence not in LIES
            assert sentence not in ORDER, "an order was repeated"
            assert "http" not in sentence and "evil" not in sentence
            assert result.citations, "every shown sentence has its evidence"
        for citation in grounder.citations:
            text = next(passage.text for passage in issued if passage.number == citation.passage_number)
            assert 0 <= citation.start < citation.end <= len(text)
        cited = [int(number) for result in shown for number in re.findall(r"\[(\d+)\]", result.text)]
        assert set(cited) == set(range(1, len(grounder.citations) + 1)), "markers point into the sources"


def test_a_lie_costs_its_neighbour_nothing() -> None:
    issued = passages()
    mixed = [answer for answer in ALL if answer.true]
    kept = sum(any(plain(result.text) in answer.true for result in run(answer.text, issued)[1]) for answer in mixed)
    assert kept / len(mixed) >= 0.9


def test_sentences_near_the_wording_pass_with_their_own_passage_as_evidence() -> None:
    issued, rules = passages(), Rules()
    outcome: Counter[bool] = Counter()
    failed: list[tuple[str, str]] = []
    for number, topic in enumerate(TOPICS, start=1):
        for sentence in topic.true:
            verdict = rules.judge(sentence, issued)
            right = verdict.supported and all(one.passage.number == number for one in verdict.evidence)
            outcome[right] += 1
            if not right:
                failed.append((sentence, verdict.why))
    assert outcome[True] / outcome.total() >= 0.9, failed


def test_a_wrong_marker_is_corrected() -> None:
    issued = passages()
    for number, topic in enumerate(TOPICS, start=1):
        wrong = number % len(TOPICS) + 1
        grounder, shown = run(f"{topic.true[0][:-1]} [{wrong}].", issued)
        assert [citation.passage_number for citation in grounder.citations] == [number]
        assert plain(shown[0].text) == topic.true[0]


def test_a_model_that_never_stops_is_stopped() -> None:
    endless = next(answer for answer in ALL if answer.kind == "ten thousand words")
    assert len(endless.text.split()) >= 10_000
    grounder, _ = run(endless.text, passages())
    assert grounder.truncated
    assert grounder.feed("Heron is a small survey boat with two electric motors. ") == []


def test_a_model_that_repeats_itself_is_stopped() -> None:
    grounder, shown = run("Heron has two radios [4]. " * 50, passages())
    assert [plain(result.text) for result in shown] == ["Heron has two radios."]
    assert grounder.truncated


def _texts(answer: Answer, seed: int) -> str:
    return "".join(result.text for result in run(answer.text, passages(), seed)[1])


def test_the_split_of_the_stream_changes_nothing() -> None:
    for answer in random.Random(4).sample(ALL, 40):
        assert _texts(answer, 1) == _texts(answer, 2)
