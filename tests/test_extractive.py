"""The extractive model: what it says, when it refuses, and that it says nothing of its own."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agents import ModelSettings, ModelTracing
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chapterverse.config import Settings
from chapterverse.embeddings.local import LocalEmbedder
from chapterverse.extractive import ExtractiveModel, Pick, Reader, ReaderPicker
from chapterverse.extractive.candidates import candidates
from chapterverse.extractive.matching import defines, expands, says_whether
from chapterverse.extractive.model import write
from chapterverse.extractive.question import understand
from chapterverse.extractive.words import stem, words
from chapterverse.models import RetrievalRequest
from chapterverse.refusals import NOT_FOUND, NOT_IN_BOOK, not_in_selection
from chapterverse.retrieval import retrieve_with_retry
from chapterverse.testing import HashEmbedder
from chapterverse.trained import CrossEncoder
from chapterverse.transcript import IssuedPassage, render_question, render_selection
from chapterverse.wiring import open_services

QUESTIONS = Path(__file__).parent.parent / "examples" / "questions.jsonl"

TERN = IssuedPassage(
    4,
    """## Tern

All examples use Tern, a small delivery robot. Its wheels are made of rubber.

| property | value |
| --- | --- |
| wheel radius | 0.05 m |
| top speed | 0.5 m/s |
| mass | 6 kg |

Tern carries these sensors:

- A lidar on the mast.
- A depth camera at the front.

Start the robot with the launch file:

```bash
ros2 launch tern_bringup start.launch.py
```

The robot stops when its battery is empty, because the drivers lose power.
""",
    "How to Read › Tern",
    "http://book/tern",
    0.7,
)
ROS = IssuedPassage(
    2, "ROS 2 is a set of libraries for robots. It was published in 2017.", "ROS 2", "http://book/ros", 0.5
)


@pytest.fixture(scope="module")
def embedder() -> LocalEmbedder:
    return LocalEmbedder(1)


@pytest.fixture(scope="module")
def reader() -> Iterator[Reader]:
    encoder = CrossEncoder("reader", threads=1)
    yield Reader(encoder)
    encoder.close()


@pytest.fixture
def picker(embedder: LocalEmbedder, reader: Reader) -> ReaderPicker:
    return ReaderPicker(embedder, reader)


async def said(picker: ReaderPicker, question: str, *passages: IssuedPassage) -> str:
    return await ExtractiveModel(picker).answer(render_question(question, passages or (TERN, ROS), "tool"))


class TestAnswers:
    @pytest.mark.parametrize(
        ("question", "answer"),
        [
            ("How heavy is Tern?", "mass: 6 kg [4]"),
            ("What does Tern weigh?", "mass: 6 kg [4]"),
            ("WHAT IS ROS 2?", "ROS 2 is a set of libraries for robots [2]."),
            ("What is the top speed of Tern?", "top speed: 0.5 m/s [4]"),
            ("What is ROS 2?", "ROS 2 is a set of libraries for robots [2]."),
            (
                "Why does the robot stop?",
                "The robot stops when its battery is empty, because the drivers lose power [4].",
            ),
            ("When was ROS 2 published?", "ROS 2 is a set of libraries for robots [2]. It was published in 2017 [2]."),
            (
                "Which sensors does Tern carry?",
                "Tern carries these sensors [4]:\n\nA lidar on the mast [4]. A depth camera",
            ),
            (
                "How do I start the robot with the launch file?",
                "Start the robot with the launch file [4]:\n\n```bash\nros2 launch tern_bringup start.launch.py\n```",
            ),
        ],
    )
    async def test_with_the_books_own_sentences(self, picker: ReaderPicker, question: str, answer: str) -> None:
        assert (await said(picker, question)).startswith(answer)

    @pytest.mark.parametrize(
        "question",
        [
            "How much does Tern cost?",
            "What is the battery capacity of Tern?",
            "Who built Tern?",
            "Who made Tern?",
            "Where is Tern made?",
            "How tall is Tern?",
            "How long does Tern's battery last?",
            "What does ROS stand for?",
            "How many kilometres does Tern travel?",
            "In which year was Tern built?",
            "Is Tern faster than a Husky?",
            "How do I start Tern on Windows?",
            "How do I keep a sourdough starter alive?",
            "???",
        ],
    )
    async def test_refuses_what_the_passages_do_not_say(self, picker: ReaderPicker, question: str) -> None:
        assert await said(picker, question) == NOT_IN_BOOK

    async def test_refuses_without_passages(self, picker: ReaderPicker) -> None:
        assert await ExtractiveModel(picker).answer(render_question("What is ROS 2?", (), "tool")) == NOT_FOUND

    async def test_a_selection_is_refused_by_its_topic(self, picker: ReaderPicker) -> None:
        model = ExtractiveModel(picker)
        refused = await model.answer(render_selection("What is the price of Tern?", TERN))
        assert refused == not_in_selection("the price of Tern")
        assert await model.answer(render_selection("How heavy is Tern?", TERN)) == "mass: 6 kg [4]"

    @given(st.text(max_size=300), st.text(max_size=80), st.booleans())
    @settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
    async def test_says_only_what_the_passages_hold(
        self, reader: Reader, text: str, question: str, selected: bool
    ) -> None:
        passages = [IssuedPassage(1, text, "Title", "", 0.5), ROS]
        picks = await ReaderPicker(HashEmbedder(), reader).pick(question, passages, selected=selected)
        assert len(picks) <= 12
        for pick in picks:
            source = passages[0].text if pick.number == 1 else ROS.text
            for word in pick.text.replace(": ", " ").replace("; ", " ").split():
                assert word.strip(":;") in source


class TestModel:
    async def test_streams_word_by_word_what_it_would_say_at_once(self, picker: ReaderPicker) -> None:
        model = ExtractiveModel(picker)
        items: Any = render_question("What is ROS 2?", [TERN, ROS], "tool")
        rest: Any = (ModelSettings(), [], None, [], ModelTracing.DISABLED)
        more: Any = {"previous_response_id": None, "conversation_id": None, "prompt": None}
        whole: Any = await model.get_response("be brief", items, *rest, **more)
        events: list[Any] = [event async for event in model.stream_response("be brief", items, *rest, **more)]
        deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
        assert "".join(deltas) == whole.output[0].content[0].text == "ROS 2 is a set of libraries for robots [2]."
        assert len(deltas) == 10
        assert events[-1].type == "response.completed"
        assert whole.usage.total_tokens == events[-1].response.usage.total_tokens > 0

    def test_markers_and_paragraphs(self) -> None:
        picks = [
            Pick(1, "One thing is said."),
            Pick(2, "Is it?"),
            Pick(2, "mass: 6 kg"),
            Pick(2, "Run this:"),
            Pick(2, "```\nrun\n```", is_code=True),
            Pick(3, "Done."),
        ]
        assert write(picks) == (
            "One thing is said [1]. Is it [2]?\n\nmass: 6 kg [2]\n\nRun this [2]:\n\n```\nrun\n```\n\nDone [3]."
        )
        assert write([]) == ""


class TestCandidates:
    def test_what_can_be_said(self) -> None:
        found = {candidate.text: candidate for candidate in candidates([TERN])}
        assert list(found) == [
            "All examples use Tern, a small delivery robot.",
            "Its wheels are made of rubber.",
            "wheel radius: 0.05 m",
            "top speed: 0.5 m/s",
            "mass: 6 kg",
            "Tern carries these sensors:",
            "A lidar on the mast.",
            "A depth camera at the front.",
            "Start the robot with the launch file:",
            "The robot stops when its battery is empty, because the drivers lose power.",
        ]
        assert found["Its wheels are made of rubber."].before == "All examples use Tern, a small delivery robot."
        assert found["mass: 6 kg"].lead == "property value"
        assert found["mass: 6 kg"].is_row
        assert found["A depth camera at the front."].lead == "Tern carries these sensors:"
        assert found["Start the robot with the launch file:"].code.count("\n") == 2
        assert found["mass: 6 kg"].heading == "How to Read › Tern Tern"
        assert list(found.values())[-1].lead == ""

    def test_a_passage_that_begins_inside_code(self) -> None:
        cut = IssuedPassage(1, "    return x\n```\n\nThe function returns a number.", "", "", 1.0)
        assert [candidate.text for candidate in candidates([cut])] == ["The function returns a number."]

    def test_a_passage_that_is_cut_out_of_code(self) -> None:
        cut = IssuedPassage(
            1, "    self.timer = start(0.05)\n\n    def stop(self):\n        self.timer.end()", "", "", 1.0
        )
        assert candidates([cut]) == []

    def test_what_two_passages_repeat_comes_once(self) -> None:
        assert len(candidates([ROS, ROS])) == 2


class TestQuestion:
    @pytest.mark.parametrize(
        ("text", "kind", "unit"),
        [
            ("How many hours of audio?", "number", "hour"),
            ("How many times may it fail?", "number", None),
            ("How heavy is Tern?", "number", None),
            ("What port does it use?", "number", "port"),
            ("In which year was it released?", "time", None),
            ("When was it released?", "time", None),
            ("What does it weigh?", "number", None),
            ("What is its weight?", "number", None),
            ("Who made it?", "person", None),
            ("Where is the lidar?", "place", None),
            ("Two robots share a network. How do I keep them apart?", "manner", None),
            ("My node freezes when I call it. Why?", "reason", None),
            ("What is ROS 2?", "definition", None),
            ("Is it fast?", "yes_no", None),
            ("Which node publishes it?", "choice", None),
            ("node freezes when called", "topic", None),
        ],
    )
    def test_kinds(self, text: str, kind: str, unit: str | None) -> None:
        question = understand(text)
        assert (question.kind, question.unit) == (kind, stem(unit) if unit else None)

    @pytest.mark.parametrize(
        "questions",
        [
            ("How heavy is it?", "What does it weigh?", "its weight", "What mass?"),
            ("How much is it?", "What does it cost?", "price", "How expensive is it?"),
            ("How fast is it?", "What is its speed?"),
            ("How old is it?", "What age?"),
        ],
    )
    def test_a_measure_is_one_however_it_is_asked_for(self, questions: tuple[str, ...]) -> None:
        measures = [understand(question).measure for question in questions]
        assert frozenset.intersection(*(measure.told for measure in measures if measure)), questions
        assert all(measures)

    def test_how_long_something_lasts_is_no_length(self) -> None:
        length, duration = understand("How long is it?").measure, understand("How long does it take?").measure
        assert length and duration
        assert stem("km") in length.also - duration.also

    @pytest.mark.parametrize(
        ("question", "brief"),
        [
            ("How heavy is it?", True),
            ("battery life", True),
            ("Is it?", False),
            ("Which sensors does Tern carry?", False),
        ],
    )
    def test_brief_ones(self, question: str, brief: bool) -> None:
        assert understand(question).brief is brief

    def test_only_the_asking_sentence_must_be_covered(self) -> None:
        question = understand("Two teams share our Wi-Fi. How do we keep robots apart?")
        assert [word.raw for word in question.asked] == ["keep", "robots", "apart"]
        assert "Wi-Fi" in [word.raw for word in question.words]

    @given(st.text(max_size=200))
    def test_any_text_can_be_understood(self, text: str) -> None:
        assert set(understand(text).asked) <= set(understand(text).words)


class TestWords:
    @pytest.mark.parametrize(
        "forms",
        ["simulate simulates simulated simulating", "robot robots", "divide divides", "write wrote", "policy policies"],
    )
    def test_forms_of_a_word_have_one_stem(self, forms: str) -> None:
        assert len({stem(form) for form in forms.split()}) == 1

    def test_names_numbers_and_identifiers_are_particular(self) -> None:
        found = {word.raw: word.particular for word in words("Which node sets ROS_DOMAIN_ID for Tern to 42 today?")}
        assert found == {"node": False, "sets": False, "ROS_DOMAIN_ID": True, "Tern": True, "42": True, "today": False}

    @pytest.mark.parametrize(
        ("term", "text", "is_one"),
        [
            ("ROS 2", "ROS 2 is a set of tools.", True),
            ("ROS 2", "ROS 2, the second generation of ROS, is a set.", True),
            ("overlay", "An overlay is a workspace.", True),
            ("ROS 2", "ROS 2 has four parts.", False),
            ("quaternion", "Quaternion: four numbers that represent a rotation.", True),
            ("a (b", "A (b is c.", True),
        ],
    )
    def test_definitions(self, term: str, text: str, is_one: bool) -> None:
        assert defines(term, text) is is_one

    @pytest.mark.parametrize(
        ("question", "text", "does"),
        [
            ("Is ROS 2 an operating system?", "Despite its name it is not an operating system.", True),
            ("Is it an operating system? (ROS 2)", "ROS 2 isn't an operating system at all.", True),
            ("Are wheels a problem?", "Wheels are a problem on stairs.", True),
            ("Is ROS 2 an operating system?", "ROS 2, the Robot Operating System, is a set of tools.", False),
            ("Is it fast?", "It is a fast robot.", False),
        ],
    )
    def test_whether_a_thing_is_another(self, question: str, text: str, does: bool) -> None:
        assert says_whether(understand(question), text) is does

    def test_what_an_abbreviation_stands_for(self) -> None:
        assert expands("DDS", "ROS 2 uses DDS, the Data Distribution Service, as its usual middleware.")
        assert expands("VLA", "A vision-language-action model takes camera images.")
        assert not expands("DDS", "DDS is a standard of the Object Management Group.")


@pytest.mark.slow
async def test_the_example_books_questions(example_home: Path, reader: Reader) -> None:
    """SC-006 for the model alone: without the confidence of the search and without the check of citations."""
    answered = refused = 0
    async with open_services(Settings.load(chapterverse_home=example_home)) as services:
        picker = ReaderPicker(services.embedder, reader)
        for line in QUESTIONS.read_text("utf-8").splitlines():
            question = json.loads(line)
            found = await retrieve_with_retry(
                RetrievalRequest(query=question["question"]), services.embedder, services.index
            )
            passages = [
                IssuedPassage(chunk.rank, chunk.chunk_text, chunk.breadcrumb, chunk.source_url, chunk.similarity_score)
                for chunk in found.results
            ]
            picks = await picker.pick(question["question"], passages)
            said = " ".join(" ".join(pick.text.replace(":", " ").replace(";", " ").split()) for pick in picks)
            if question["answerable"]:
                gold = question["sentence"].replace("|", " ").replace(":", " ").replace(";", " ")
                answered += " ".join(gold.split()) in said
            else:
                refused += not picks
    assert answered >= 38
    assert refused >= 19
