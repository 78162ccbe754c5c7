"""The checks of `chapterverse doctor`: which engine each part uses, why, its state, and how to fix a problem.

Probes the engines and changes nothing.
"""

import json
from dataclasses import asdict, dataclass
from typing import Final

from chapterverse.errors import (
    ChapterverseError,
    EmbeddingMismatchError,
    IndexDamaged,
    IndexMissing,
    IndexOutdatedError,
)
from chapterverse.health import Dependency, Health
from chapterverse.retrieval import require_same_model
from chapterverse.services import Services
from chapterverse.settings import Settings

PATIENCE: Final = 6.0  # seconds: more than a server's probes have, because an embedded database may have to be created
SHOWN_PAGES: Final = 5  # flagged pages that are named
_INGEST: Final = "chapterverse ingest <folder, file or URL>"
_REBUILD: Final = "chapterverse ingest --fresh <folder, file or URL>"


@dataclass(frozen=True, slots=True)
class Finding:
    """The state of one part."""

    part: str
    engine: str
    why: str
    state: str  # up, down, empty
    message: str = ""
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All findings."""

    home: str
    findings: tuple[Finding, ...]

    @property
    def healthy(self) -> bool:
        """Whether every part can be used."""
        return all(finding.state == "up" for finding in self.findings)

    def to_json(self) -> str:
        """The findings as JSON."""
        return json.dumps({"healthy": self.healthy} | asdict(self), indent=2)


async def diagnose(services: Services, others: tuple[Dependency, ...] = ()) -> Diagnosis:
    """Probe every part and check the book. `others`: additional dependencies of a server."""
    dependencies = (*services.dependencies, *others)
    health = await Health(dependencies, PATIENCE).check()
    fixes = _fixes(services.settings)
    findings = []
    for dependency in dependencies:
        state = health.services[dependency.name]
        fix = "" if state.status == "up" else fixes[dependency.name]
        finding = Finding(dependency.name, dependency.engine, dependency.why, state.status, state.message or "", fix)
        findings.append(finding)
    return Diagnosis(str(services.settings.chapterverse_home), (*findings, await _book(services)))


async def _book(services: Services) -> Finding:
    engine = services.index.engine
    try:
        manifest = await services.index.manifest()
        await require_same_model(services.embedder, services.index)
    except IndexMissing as failure:
        return Finding("book", engine, "", "empty", failure.message, _INGEST)
    except (IndexDamaged, IndexOutdatedError) as failure:
        return Finding("book", engine, "", "down", failure.message, _REBUILD)
    except EmbeddingMismatchError as failure:
        return Finding("book", engine, "", "down", failure.message, "chapterverse ingest --reembed")
    except ChapterverseError as failure:
        return Finding("book", engine, "", "down", failure.message)
    if damage := await services.index.verify():
        return Finding("book", engine, "", "down", damage, _REBUILD)
    message = f"{manifest.pages:,} pages, {manifest.chunks:,} passages, ingested {manifest.created_at[:16]} UTC"
    if len(manifest.shelf) > 1:
        message += f"; {len(manifest.shelf)} editions, see: chapterverse books"
    if flagged := [page.url for page in await services.index.pages() if page.flags]:
        urls = ", ".join(flagged[:SHOWN_PAGES]) + (", …" if len(flagged) > SHOWN_PAGES else "")
        message += f"; {len(flagged):,} flagged, because they address a language model: {urls}"
    return Finding("book", engine, f"embedded with {manifest.fingerprint.model}", "up", message)


def _fixes(settings: Settings) -> dict[str, str]:
    """Return how to fix each part if it is down, for the settings in use."""
    without = "Questions are answered without it."
    return {
        "qdrant": "Check QDRANT_URL and QDRANT_API_KEY, or unset QDRANT_URL for the embedded engine."
        if settings.qdrant_url
        else _INGEST,
        "embeddings": "Check the key and address of the embedding service, or set EMBEDDINGS=local.",
        "llm": "Check key, model and address of the language model, or unset its key: then excerpts answer."
        if settings.gemini_api_key or settings.openai_api_key
        else "Install Chapterverse again: the model it ships is missing or damaged.",
        "judge": "Check JUDGE_MODEL, JUDGE_BASE_URL and JUDGE_API_KEY, or set JUDGE=off: then answers are excerpts."
        if settings.judge_model or settings.judge_base_url
        else "Check key, model and address of the language model, which judges, too.",
        "database": f"Check DATABASE_URL, or unset it for the embedded Postgres. {without}"
        if settings.database_url
        else f"Set DATABASE_URL to a Postgres of yours, or fix what the message names. {without}",
        "redis": f"Check REDIS_URL, or unset it: then each worker counts requests alone. {without}",
    }
