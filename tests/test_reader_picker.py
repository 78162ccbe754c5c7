"""The trained reader among the rules: what it decides for a selection, what it ranks, and what is not read at all."""

from collections.abc import Iterator, Sequence

import pytest

from chapterverse.embeddings.local import LocalEmbedder
from chapterverse.extractive import ExtractiveModel, Reader, ReaderPicker
from chapterverse.extractive.reading import WORDS, Read, windows
from chapterverse.trained import CrossEncoder
from chapterverse.transcript import MORE, IssuedPassage, render_history, render_question
from chapterverse.transcript import Exchange as Turn

WARSAW = IssuedPassage(
    1,
    "Warsaw was founded around 1300 near the Vistula. Its university opened in 1816. The city has many parks, and the "
    "largest is Skaryszew Park. In 1944 an uprising failed.",
    "",
    "",
    1.0,
)
GAZEBO = IssuedPassage(
    1,
    "Everything that Gazebo does is done by plugins called systems. A world without the physics system does not move.",
    "Gazebo › Systems",
    "",
    0.6,
)


class CountingReader(Reader):
    """Notes what it is given to read."""

    def __init__(self, model: CrossEncoder) -> None:
        super().__init__(model)
        self.runs: list[Sequence[str]] = []

    async def read(self, question: str, runs: Sequence[Sequence[str]]) -> list[list[Read]]:
        self.runs.extend(runs)
        return await super().read(question, runs)


@pytest.fixture(scope="module")
def encoder() -> Iterator[CrossEncoder]:
    model = CrossEncoder("reader", threads=1)
    yield model
    model.close()


@pytest.fixture
def reader(encoder: CrossEncoder) -> CountingReader:
    return CountingReader(encoder)


@pytest.fixture(scope="module")
def embedder() -> LocalEmbedder:
    return LocalEmbedder(1)


@pytest.fixture
def picker(embedder: LocalEmbedder, reader: CountingReader) -> ReaderPicker:
    return ReaderPicker(embedder, reader)


@pytest.mark.parametrize(
    ("question", "last"),
    [
        ("When did the university open?", "Its university opened in 1816."),
        ("Which park is the largest?", "The city has many parks, and the largest is Skaryszew Park."),
    ],
)
async def test_a_selection_that_answers(picker: ReaderPicker, question: str, last: str) -> None:
    assert (await picker.pick(question, [WARSAW], selected=True))[-1].text == last


@pytest.mark.parametrize("question", ["When did the airport open?", "Who designed the largest park?"])
async def test_a_selection_that_only_looks_as_if_it_answered(picker: ReaderPicker, question: str) -> None:
    assert await picker.pick(question, [WARSAW], selected=True) == []


async def test_no_more_is_said_than_was_asked(picker: ReaderPicker) -> None:
    picks = await picker.pick("Which park is the largest?", [WARSAW], selected=True)
    assert len(picks) == 1


async def test_an_attribute_that_no_sentence_knows_is_refused_unread(
    picker: ReaderPicker, reader: CountingReader
) -> None:
    assert await picker.pick("What is the default physics step of Gazebo?", [GAZEBO]) == []
    assert reader.runs == []


async def test_one_sentence_that_stands_alone_is_not_read(picker: ReaderPicker, reader: CountingReader) -> None:
    picks = await picker.pick("What are the plugins of Gazebo called?", [GAZEBO])
    assert [pick.text for pick in picks] == ["Everything that Gazebo does is done by plugins called systems."]
    assert reader.runs == []


async def test_who_asks_for_more_is_not_told_the_same_again(picker: ReaderPicker) -> None:
    passage = IssuedPassage(
        1, "ROS 2 is a set of libraries for robots. ROS 2 has no central master process.", "ROS 2", "http://b", 0.7
    )
    model = ExtractiveModel(picker)
    question = render_question("What is ROS 2?", [passage], "tool")
    first = await model.answer(question)
    assert first == "ROS 2 is a set of libraries for robots [1]."
    told = render_history([Turn("What is ROS 2?", first)])
    more = await model.answer([*told, *render_question(f"What is ROS 2? {MORE}", [passage], "tool")])
    assert more == "ROS 2 has no central master process [1]."
    assert await model.answer([*told, *question]) == first  # asked again, not asked for more


def test_windows_hold_every_sentence_and_overlap_by_one() -> None:
    sentences = [f"{'word ' * 39}{number}." for number in range(9)]
    found = windows(sentences)
    assert sorted({at for window in found for at in window}) == list(range(9))
    assert all(sum(len(sentences[at].split()) for at in window) <= WORDS for window in found)
    assert [later.start for later in found[1:]] == [window.stop - 1 for window in found[:-1]]
    assert windows([]) == []
    assert windows(["word " * 500, "short."]) == [range(0, 1), range(1, 2)]
