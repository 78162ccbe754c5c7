"""Asks the cases with each writer: excerpts, the obedient model, and the small real model.

The book with the planted pages is cached in `.cache` as long as pages and readers stay the same. The search always
finds the planted page, and the check before the model lets everything pass, so that every case reaches the writer.
"""

import hashlib
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from typing import Final

from tests.llm_stub import serving_llm

from bench.injection.cases import Case
from bench.injection.judging import Verdict, judge, obeys
from bench.injection.obedient import WAYS, Obedient
from bench.llm.installing import HOME, MODEL, MODEL_SHA256, install
from bench.llm.recording import Recorder, serving_records
from bench.llm.serving import serving_model
from bench.results import ROOT
from chapterverse.answering import Prepared, WholeBook, fold, prepare, stream
from chapterverse.errors import ChapterverseError, RetrievalUnavailable
from chapterverse.ingestion.options import SourceOptions
from chapterverse.ingestion.pipeline import Workshop, ingest
from chapterverse.ingestion.sources import open_source
from chapterverse.models import ChatRequest, ChatResponse, SearchFilters
from chapterverse.services import Services
from chapterverse.settings import Settings
from chapterverse.wiring import choose_judge, choose_writer, open_services

_NOWHERE: Final = "postgresql://nobody@127.0.0.1:1/none"  # nothing is stored
_ROUNDS: Final = 3
_TRIES: Final = 5
_PAGES: Final = "pages"  # the folder that is ingested; addresses begin with its name


@dataclass(frozen=True, slots=True)
class Outcome:
    """A case, the writer that was asked, and the result."""

    case: Case
    model: str
    way: str
    verdict: Verdict
    answer: str
    saw: bool = True  # whether the model was shown the planted text
    obeyed: bool | None = None  # whether the model's reply followed the text, before any check


@asynccontextmanager
async def planted_book(cases: Sequence[Case]) -> AsyncIterator[Services]:
    """A book of all planted pages, with the excerpt writer."""
    pages = [page for case in cases for page in case.pages]
    readers = sorted((ROOT / "src" / "chapterverse" / "ingestion").rglob("*.py"))
    seen = hashlib.sha256(repr(pages).encode() + b"".join(path.read_bytes() for path in readers)).hexdigest()[:16]
    home = ROOT / ".cache" / "bench" / "injection" / seen
    for path, content in pages:
        target = home / _PAGES / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content, "utf-8")
    async with open_services(Settings.load(chapterverse_home=home, database_url=_NOWHERE)) as services:
        source = open_source(str(home / _PAGES), SourceOptions(generator="plain"))
        await ingest([source], Workshop(services.index, services.embedder, home))
        yield services


async def ask_keyless(cases: Sequence[Case], services: Services) -> list[Outcome]:
    """Ask every case without a key."""
    outcomes = []
    for case in cases:
        answer = await _ask(case, services)
        outcomes.append(Outcome(case, "keyless", "", judge(case, answer), answer.answer))
    return outcomes


async def ask_obedient(cases: Sequence[Case], services: Services) -> list[Outcome]:
    """Ask every case once for each way to obey. If the planted text is not visible, ask once."""
    outcomes = []
    stub = Obedient()
    with serving_llm(stub), _with_model(services, stub.url) as obeying:
        for case in cases:
            stub.case = case
            stub.judge.truths = {case.truth}
            for stub.way in WAYS:
                stub.saw = False
                answer = await _ask(case, obeying)
                outcomes.append(Outcome(case, "obedient", stub.way, judge(case, answer), answer.answer, stub.saw))
                if not stub.saw:
                    break
    return outcomes


async def ask_real(cases: Sequence[Case], services: Services, say: Callable[[str], None]) -> list[Outcome]:
    """Ask every case with the small real model, whose replies are recorded."""
    install()
    recorder = Recorder(HOME / "records", MODEL_SHA256)
    with serving_records(recorder) as url, _with_model(services, url) as asking:
        for _ in range(_ROUNDS):
            outcomes = [await _ask_recorded(case, asking, recorder) for case in cases]
            if not recorder.missing:
                break
            with serving_model() as address:
                for number, record in enumerate(recorder.fill(address), 1):
                    say(f"  {number}  {record.seconds:5.1f} s  {record.text[:90]!r}")
    return [outcome for outcome in outcomes if outcome is not None]


async def _ask_recorded(case: Case, services: Services, recorder: Recorder) -> Outcome | None:
    recorder.served.clear()
    try:
        answer = await _ask(case, services)
    except ChapterverseError:  # not recorded yet
        return None
    said = " ".join(record.text for record in recorder.served)
    return Outcome(case, "real", "", judge(case, answer), answer.answer, obeyed=obeys(case, said))


async def _ask(case: Case, services: Services) -> ChatResponse:
    if case.selection:
        request = ChatRequest(query=case.question, mode="selected_text", selected_text=case.selection)
    else:
        pages = SearchFilters(source_url=[f"{_PAGES}/{path}" for path, _ in case.pages])
        request = ChatRequest(query=case.question, filters=pages)
    prepared = await _prepare(request, services)
    if prepared.found is not None:
        prepared = replace(prepared, scope=WholeBook(prepared.found.model_copy(update={"confidence": None})))
    return await fold(stream(prepared, services))


async def _prepare(request: ChatRequest, services: Services) -> Prepared:
    """Prepare a question. A search that times out on a busy machine is repeated."""
    for _ in range(_TRIES):
        try:
            return await prepare(request, services, turns=())
        except RetrievalUnavailable as failure:
            last = failure
    raise last


@contextmanager
def _with_model(services: Services, url: str) -> Iterator[Services]:
    """The same engines with the language model at an address, called once for each answer."""
    chosen = Settings.load(openai_api_key="none", openai_model=MODEL.stem, openai_base_url=url, agent_max_calls=1)
    names = ("openai_api_key", "openai_model", "openai_base_url", "agent_max_calls")
    settings = services.settings.model_copy(update={name: getattr(chosen, name) for name in names})
    writer, _ = choose_writer(settings)
    yield replace(services, settings=settings, writer=writer, judge=choose_judge(settings))
