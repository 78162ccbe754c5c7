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
NOTE = "Tern has a mass of 6 kg. It has two driven wheels and a caster. Its battery lasts three hours."
HUSKY = (
    "The Husky drives at up to 1 m/s. It is 39 cm high and 67 cm wide. A new one costs 20,000 dollars. The water tank "
    "is 30 cm deep, and the motor may reach 80 degrees. The cable is 3 m long. From the base to the dock the distance "
    "is 400 m."
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


async def answer(picker: ReaderPicker, question: str, text: str) -> list[str]:
    picks = await picker.pick(question, [IssuedPassage(1, text, "", "", 1.0)], selected=True)
    return [pick.text for pick in picks]


@pytest.mark.parametrize(
    "question",
    [
        "What mass?",
        "What is its mass?",
        "What is its weight?",
        "How heavy is it?",
        "HOW HEAVY IS IT",
        "how heavy is tern",
        "What does it weigh?",
        "How much does Tern weigh?",
        "weight",
    ],
)
async def test_one_measure_is_asked_for_in_many_ways(
    picker: ReaderPicker, reader: CountingReader, question: str
) -> None:
    assert await answer(picker, question, NOTE) == ["Tern has a mass of 6 kg."]
    assert reader.runs == []  # the rules see it, and the reader does not know questions so short


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("How fast is it?", "1 m/s"),
        ("What is its speed?", "1 m/s"),
        ("How tall is it?", "39 cm high"),
        ("What height?", "39 cm high"),
        ("How wide is it?", "67 cm wide"),
        ("What is its width?", "67 cm wide"),
        ("How much is it?", "20,000 dollars"),
        ("What does it cost?", "20,000 dollars"),
        ("What is the price?", "20,000 dollars"),
        ("How deep is the tank?", "30 cm deep"),
        ("tank depth", "30 cm deep"),
        ("How hot does the motor get?", "80 degrees"),
        ("motor temperature", "80 degrees"),
        ("How long is the cable?", "3 m long"),
        ("What is the length of the cable?", "3 m long"),
        ("How far is the dock?", "400 m"),
        ("What is the distance to the dock?", "400 m"),
    ],
)
async def test_everyday_measures(picker: ReaderPicker, question: str, told: str) -> None:
    assert told in " ".join(await answer(picker, question, HUSKY))


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("How heavy is it?", "The bridge is 120 m long and was opened in 1932."),
        ("How wide is the bridge?", "The bridge is 120 m long and was opened in 1932."),
        ("How heavy is Tern?", "Tern is a small robot. The charger has a mass of 2 kg."),
        ("What does Tern weigh?", "Tern is a small robot. The charger has a mass of 2 kg."),
        ("How heavy is the battery?", NOTE),
        ("How tall is it?", NOTE),
        ("How many batteries?", NOTE),
        ("Where is the battery?", NOTE),
        ("What does it cost?", NOTE),
        ("How heavy is it?", HUSKY),
        ("How old is it?", HUSKY),
        ("How deep is the dock?", HUSKY),
        ("What does the motor cost?", HUSKY),
        ("How long is the lake?", "The lake is 40 m deep. The path takes four hours."),
        ("How far is the museum?", "The museum closes at 6 pm."),
    ],
)
async def test_a_brief_question_is_not_answered_with_the_measure_of_something_else(
    picker: ReaderPicker, question: str, text: str
) -> None:
    assert await answer(picker, question, text) == []


async def test_what_points_back_brings_all_that_it_points_to(picker: ReaderPicker) -> None:
    said = await answer(picker, "How long does the battery last?", NOTE)
    assert " ".join(said) == NOTE


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
