"""The services of the race (the floor, the peers, the product in four set-ups), and how they are started and called.

The peers' services are read from `../shared/bench/peers`. Their environments are in `.cache/race`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from bench.results import ROOT

PEERS: Final = ROOT.parent / "shared" / "bench" / "peers"
CACHE: Final = ROOT / ".cache" / "race"
LLM_PORT: Final = 9401
AUX_PORT: Final = 9402
FIRST_PORT: Final = 9411

FLOOR, CONTROL = "floor", "floor again"
OURS, OURS_LOCAL, OURS_KEYLESS = "chapterverse", "chapterverse, own embedder", "chapterverse, no key"
OURS_UNJUDGED = "chapterverse, JUDGE=off"


@dataclass(frozen=True, slots=True)
class Dialect:
    """How to ask a service, and how to recognise text, the end and a reported error in its stream."""

    field: str
    text: bytes
    end: bytes
    error: bytes

    def body(self, question: str) -> dict[str, Any]:
        """The request body."""
        return {self.field: question}


PEER_DIALECT: Final = Dialect("question", b'"delta"', b"[DONE]", b'"error"')
OUR_DIALECT: Final = Dialect("query", b'"type":"chunk"', b'"type":"done"', b'"type":"error"')


@dataclass(frozen=True, slots=True)
class Racer:
    """One service. `store` is the result of its ingest of the book. `{port}` in a command is filled in."""

    name: str
    venv: str
    command: tuple[str, ...]
    importing: str  # the modules that its server process imports
    ingest: tuple[str, ...]
    folder: Path
    dialect: Dialect
    environment: Mapping[str, str] = field(default_factory=dict)
    agentic: bool = True  # whether the model is offered a tool
    llm: bool = True

    @property
    def slug(self) -> str:
        """The name as part of a path."""
        return self.name.replace(", ", "-").replace(" ", "-")

    @property
    def store(self) -> Path:
        """The folder of its data."""
        return CACHE / "stores" / self.slug

    @property
    def python(self) -> Path:
        """Its Python interpreter."""
        return CACHE / f"venv-{self.venv}" / "bin" / "python"

    @property
    def ours(self) -> bool:
        """Whether it is the product."""
        return self.dialect is OUR_DIALECT

    def env(self, store: Path | None = None) -> dict[str, str]:
        """The environment of its process. A service is recognised by the first part of the model's path."""
        data = str(store or self.store)
        known = {
            "LLM_URL": f"http://127.0.0.1:{LLM_PORT}/{self.slug}/v1",
            "EMBED_URL": f"http://127.0.0.1:{AUX_PORT}/{self.slug}/v1",
            "DATA_DIR": data,
            "CHAPTERVERSE_HOME": data,
        }
        return {**known, **{name: value.format(**known) for name, value in self.environment.items()}}


def _peer(name: str, module: str, venv: str, *, agentic: bool = True, ingests: bool = True) -> Racer:
    serve = ("-m", "uvicorn", f"{module}:app", "--host", "127.0.0.1", "--port", "{port}")
    return Racer(
        name=name,
        venv=venv,
        command=(*serve, "--log-level", "warning", "--no-access-log"),
        importing=f"import {module}",
        ingest=(f"{module}.py", "ingest") if ingests else (),
        folder=PEERS,
        dialect=PEER_DIALECT,
        environment={"OPENAI_API_KEY": "race", "HAYSTACK_TELEMETRY_ENABLED": "False"},
        agentic=agentic,
    )


_QUIET: Final = {"API_RATE_LIMIT": "1000000", "LOG_LEVEL": "ERROR"}
_MODEL: Final = {"GEMINI_API_KEY": "race", "GEMINI_BASE_URL": "{LLM_URL}"}
_EMBEDDER: Final = {
    "EMBEDDINGS": "openai",
    "OPENAI_API_KEY": "race",
    "OPENAI_BASE_URL": "{EMBED_URL}",
    "OPENAI_EMBEDDING_MODEL": "minilm",
    "OPENAI_EMBEDDING_DIMENSION": "384",
}


_PARTS: Final = ("main", "writing.agent", "embeddings.local", "conversations.store")


def _product(name: str, environment: Mapping[str, str], *, llm: bool = True) -> Racer:
    return Racer(
        name=name,
        venv="chapterverse",
        command=("-m", "chapterverse.cli", "serve", "--port", "{port}"),
        importing=f"import {', '.join(f'chapterverse.{part}' for part in _PARTS)}",
        ingest=("-m", "chapterverse.cli", "ingest", "--json"),
        folder=CACHE,
        dialect=OUR_DIALECT,
        environment={**_QUIET, **environment},
        llm=llm,
    )


RACERS: Final = (
    _peer(FLOOR, "bare_floor", "agents_sdk", agentic=False, ingests=False),
    _peer("agents_sdk", "agents_sdk", "agents_sdk"),
    _peer("pydantic_ai", "pydantic_ai_peer", "pydantic_ai"),
    _peer("langchain", "langchain_peer", "langchain"),
    _peer("llamaindex", "llamaindex_peer", "llamaindex", agentic=False),
    _peer("haystack", "haystack_peer", "haystack", agentic=False),
    _product(OURS, _MODEL | _EMBEDDER),
    _product(OURS_UNJUDGED, _MODEL | _EMBEDDER | {"JUDGE": "off"}),
    _product(OURS_LOCAL, _MODEL),
    _product(OURS_KEYLESS, {}, llm=False),
    _peer(CONTROL, "bare_floor", "agents_sdk", agentic=False, ingests=False),
)
