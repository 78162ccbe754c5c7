"""Measures the time that Chapterverse adds to a language model: `python -m bench.answering [QUESTIONS]`.

Runs a server, Postgres, a language model and a client as separate processes on loopback. The model needs 300 ms for its
first token and 20 ms for each further token. It writes sentences that no passage contains word for word, and it also
acts as the judge. The example book's questions are sent to `/chat/stream`, first one at a time and then ten at once,
with the judge, with JUDGE=off and without a key. Our own time is the time that the client waited minus the time that
the model reports it was busy. Prints a table and writes `bench/results/answering-COMMIT.json`.
"""

import asyncio
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx2
import numpy as np
from tests.llm_stub import LlmStub, Reply, _Wire, judged, shown
from tests.served import free_port

from bench.results import ROOT, save
from chapterverse.ingestion.options import SourceOptions
from chapterverse.ingestion.pipeline import Workshop, ingest
from chapterverse.ingestion.sources import open_source
from chapterverse.settings import Settings
from chapterverse.wiring import open_engines

FIRST: Final = 0.300  # seconds before the first token
TOKEN: Final = 0.020  # seconds for each further token
TOKENS: Final = 60  # maximum number of tokens of an answer; a word is one token
JUDGE_TOKEN_CHARS: Final = 4  # characters per token of a verdict, which is JSON
AT_ONCE: Final = 10
_STARTING: Final = 60.0  # seconds a process may take before it answers
_WARMING: Final = 5  # warm-up questions, which are not counted
_WHOLE: Final = re.compile(r"[A-Z`][^\n|]{20,}\.")


class PacedModel(LlmStub):
    """Writes and judges at a fixed pace. `/spent` returns the start and end of each call, in seconds."""

    def __init__(self) -> None:
        super().__init__()
        self.spent: list[tuple[float, float, str]] = []

    async def _reply(self, path: str, body: bytes, wire: _Wire) -> None:
        if path in ("/spent", "/readyz"):
            await wire.send_json(200, self.spent)
        else:
            await super()._reply(path, body, wire)

    async def _stream(self, reply: Reply, request: dict[str, Any], wire: _Wire) -> None:
        await self._paced(_answer(request), wire, "writes")

    async def _judge(self, request: dict[str, Any], wire: _Wire) -> None:
        asked = judged(request)
        units = list(asked.evidence)[:1]
        verdicts = [
            {"claim": number, "supported": True, "units": units, "reason": ""}
            for number, _ in enumerate(asked.claims, start=1)
        ]
        text = json.dumps({"verdicts": verdicts})
        size = JUDGE_TOKEN_CHARS
        await self._paced([text[at : at + size] for at in range(0, len(text), size)], wire, "judges")

    async def _paced(self, tokens: Sequence[str], wire: _Wire, what: str) -> None:
        now = asyncio.get_running_loop().time
        begin = now()
        await wire.start_stream()
        try:
            for number, token in enumerate(tokens):
                await wire.wait(max(0.0, begin + FIRST + TOKEN * number - now()))
                await wire.chunk({"role": "assistant", "content": token}, None)
        finally:
            self.spent.append((begin, now(), what))
        await wire.finish("stop")


def _answer(request: dict[str, Any]) -> list[str]:
    """Return an answer whose sentences begin with words that no sentence of the book begins with."""
    words: list[str] = []
    for passage in shown(request).passages:
        for number, text in passage.units.items():
            said = f"In short, {text[:1].lower()}{text[1:-1]} [{number}]. ".split(" ")
            if _WHOLE.fullmatch(text) and len(words) + len(said) <= TOKENS:
                words += [f"{word} " for word in said if word]
    return words


@dataclass(frozen=True, slots=True)
class Asked:
    """One question as the client saw it. Times are in milliseconds."""

    first: float
    first_text: float
    total: float
    done: dict[str, Any]


def ask(client: httpx2.Client, question: str) -> Asked:
    """Ask a question and record when the first and the last event arrived."""
    started, first, text, event = time.perf_counter(), 0.0, 0.0, {}
    with client.stream("POST", "/chat/stream", json={"query": question}) as answer:
        for line in answer.iter_lines():
            if line.startswith("data: "):
                first = first or time.perf_counter()
                event = json.loads(line.removeprefix("data: "))
                text = text or (time.perf_counter() if event["type"] == "chunk" else 0.0)
    if event.get("type") != "done":
        raise SystemExit(f"{question}: {event}")
    first_event, first_text, total = ((moment - started) * 1000 for moment in (first, text, time.perf_counter()))
    return Asked(first_event, first_text, total, event)


async def _make_book(home: Path) -> None:
    async with open_engines(Settings.load(chapterverse_home=home)) as engines:
        source = open_source(str(ROOT / "examples" / "book"), SourceOptions())
        await ingest([source], Workshop(engines.index, engines.embedder, home))


@contextmanager
def _process(url: str, *command: str, **environment: str) -> Iterator[httpx2.Client]:
    """Start a process that serves HTTP and wait until it answers."""
    clean = {name: value for name, value in os.environ.items() if name.lower() not in Settings.model_fields}
    process = subprocess.Popen(
        [sys.executable, "-m", *command], env=clean | environment, cwd=ROOT, stderr=subprocess.DEVNULL
    )
    try:
        with httpx2.Client(base_url=url, timeout=60, trust_env=False) as client:
            begin = time.monotonic()
            while not _answers(client):
                if process.poll() is not None or time.monotonic() - begin > _STARTING:
                    raise SystemExit(f"{' '.join(command)} did not start")
                time.sleep(0.05)
            yield client
    finally:
        process.terminate()
        process.wait()


def _answers(client: httpx2.Client) -> bool:
    try:
        return client.get("/readyz").status_code < 500
    except httpx2.HTTPError:
        return False


@contextmanager
def _serving(home: Path, **settings: str) -> Iterator[httpx2.Client]:
    port = free_port()
    arguments = ("chapterverse.cli", "serve", "--port", str(port))
    environment = {"CHAPTERVERSE_HOME": str(home), "API_RATE_LIMIT": "1000000", "LOG_LEVEL": "ERROR", **settings}
    with _process(f"http://127.0.0.1:{port}", *arguments, **environment) as client:
        for question in itertools.islice(_questions(), _WARMING):
            ask(client, question)
        yield client


def _questions() -> Iterator[str]:
    lines = (ROOT / "examples" / "questions.jsonl").read_text("utf-8").splitlines()
    asked = [json.loads(line) for line in lines]
    return itertools.cycle([one["question"] for one in asked if one["answerable"]])


def _figures(values: Sequence[float]) -> dict[str, float]:
    return {f"p{share}": round(float(np.percentile(values, share)), 1) for share in (50, 95)}


def _measure(client: httpx2.Client, model: httpx2.Client | None, count: int, at_once: int) -> dict[str, Any]:
    questions = list(itertools.islice(_questions(), count))
    before = len(model.get("/spent").json()) if model else 0
    with ThreadPoolExecutor(at_once) as pool:
        asked = list(pool.map(lambda question: ask(client, question), questions))
    result: dict[str, Any] = {
        "questions": count,
        "at_once": at_once,
        "first_event_ms": _figures([one.first for one in asked]),
        "first_text_ms": _figures([one.first_text for one in asked]),
        "total_ms": _figures([one.total for one in asked]),
        "judge_calls": round(sum(one.done["metadata"]["judge_calls"] for one in asked) / count, 2),
        "judge_tokens": round(sum(one.done["metadata"]["judge_tokens"] for one in asked) / count),
        "answered": sum(one.done["status"] == "answered" for one in asked),
        "most_llm_calls": max(one.done["metadata"]["llm_calls"] for one in asked),
    }
    if model is None:
        return result
    spent = model.get("/spent").json()[before:]
    called = [one for one in asked if one.done["metadata"]["llm_calls"]]
    writing = [end - begin for begin, end, what in spent if what == "writes"]
    result["questions_with_a_call"] = len(called)
    result["floor_ms"] = _figures([taken * 1000 for taken in writing])  # the model's writing time alone
    if at_once == 1:  # with several questions at once, a call cannot be matched to its answer
        busy = _busy([(begin, end) for begin, end, _ in spent])
        result["own_share"] = round(1 - busy * 1000 / sum(one.total for one in called), 4)
    return result


def _busy(calls: list[tuple[float, float]]) -> float:
    """Return the number of seconds during which at least one call was running."""
    total, until = 0.0, 0.0
    for begin, end in sorted(calls):
        total += max(0.0, end - max(begin, until))
        until = max(until, end)
    return total


def _show(name: str, result: dict[str, Any]) -> None:
    parts = (
        f"{key.removesuffix('_ms'):>12} {result[key]['p50']:7.1f} {result[key]['p95']:7.1f}"
        for key in ("floor_ms", "first_event_ms", "first_text_ms", "total_ms")
        if key in result
    )
    own = f"own share {result['own_share']:.1%}" if "own_share" in result else ""
    judge = f"judge calls {result['judge_calls']}, tokens {result['judge_tokens']}"
    print(f"{name:20} {result['questions']:4} {' '.join(parts)}   {own} {judge}")


def bench(count: int) -> None:
    """Measure, print and save."""
    results: dict[str, Any] = {"load_before": os.getloadavg()[0], "first_ms": FIRST * 1000, "token_ms": TOKEN * 1000}
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        home.chmod(0o755)  # the embedded Postgres does not run as root and must be able to read the folder
        asyncio.run(_make_book(home))
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        with _process(url, "bench.answering", "--model", str(port)) as model:
            keys = {"OPENAI_API_KEY": "none", "OPENAI_MODEL": "paced", "OPENAI_BASE_URL": f"{url}/v1"}
            with _serving(home, **keys) as client:
                results["one_at_a_time"] = _measure(client, model, count, 1)
                results["ten_at_once"] = _measure(client, model, count, AT_ONCE)
            with _serving(home, **keys, JUDGE="off") as client:
                results["judge_off"] = _measure(client, model, count, 1)
        with _serving(home) as client:
            results["keyless"] = _measure(client, None, count, 1)
            results["keyless_ten_at_once"] = _measure(client, None, count, AT_ONCE)
    results["load_after"] = os.getloadavg()[0]
    print(f"load {results['load_before']:.1f} to {results['load_after']:.1f}; milliseconds, p50 and p95")
    for name in ("one_at_a_time", "ten_at_once", "judge_off", "keyless", "keyless_ten_at_once"):
        _show(name, results[name])
    print(f"written to {save('answering', results).relative_to(ROOT)}")


async def _be_the_model(port: int) -> None:
    server = await asyncio.start_server(PacedModel().answer, "127.0.0.1", port)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--model"]:
        asyncio.run(_be_the_model(int(sys.argv[2])))
    else:
        bench(int(sys.argv[1]) if sys.argv[1:] else 120)
