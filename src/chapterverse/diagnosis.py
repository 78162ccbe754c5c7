"""What `chapterverse doctor` finds: which engine each part uses, why, how it does, and what would help.

Owns the findings. Probes for real, changes nothing.
"""

import json
from dataclasses import asdict, dataclass

from chapterverse.errors import ChapterverseError, CollectionNotFoundError, EmbeddingMismatchError
from chapterverse.health import Health
from chapterverse.retrieval import require_same_model
from chapterverse.services import Services


@dataclass(frozen=True, slots=True)
class Finding:
    """One part and how it does."""

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
        """As data."""
        return json.dumps({"healthy": self.healthy} | asdict(self), indent=2)


async def diagnose(services: Services) -> Diagnosis:
    """Probe every part and look into the book."""
    health = await Health(services.dependencies).check()
    findings = []
    for dependency in services.dependencies:
        state = health.services[dependency.name]
        fix = "" if state.status == "up" else _FIXES[dependency.name]
        finding = Finding(dependency.name, dependency.engine, dependency.why, state.status, state.message or "", fix)
        findings.append(finding)
    return Diagnosis(str(services.settings.chapterverse_home), (*findings, await _book(services)))


async def _book(services: Services) -> Finding:
    engine = services.index.engine
    try:
        manifest = await services.index.manifest()
        await require_same_model(services.embedder, services.index)
    except CollectionNotFoundError as failure:
        return Finding("book", engine, "", "empty", failure.message, "chapterverse ingest <folder, file or URL>")
    except EmbeddingMismatchError as failure:
        return Finding("book", engine, "", "down", failure.message, "chapterverse ingest --reembed")
    except ChapterverseError as failure:
        return Finding("book", engine, "", "down", failure.message)
    told = f"{manifest.pages:,} pages, {manifest.chunks:,} passages, ingested {manifest.created_at[:16]} UTC"
    return Finding("book", engine, f"embedded with {manifest.fingerprint.model}", "up", told)


_FIXES = {
    "qdrant": "Check QDRANT_URL and QDRANT_API_KEY, or unset QDRANT_URL for the embedded engine.",
    "llm": "Check the key, the model and the address of the language model, or unset its key for the extractive one.",
    "database": "Check DATABASE_URL, or unset it for the embedded Postgres. Questions are answered without it.",
    "embeddings": "Check the key and address of the embedding service, or set EMBEDDINGS=local.",
}
