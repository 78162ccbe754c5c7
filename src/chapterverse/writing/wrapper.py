"""A writer that wraps another one."""

from collections.abc import AsyncGenerator, Sequence

from chapterverse.turns import Turn
from chapterverse.writing import Finished, Task, Writer, WriterEvent


class WriterWrapper:
    """Does what the writer inside does. Subclasses change one thing."""

    def __init__(self, inside: Writer) -> None:
        self.inside = inside

    @property
    def name(self) -> str:
        """The model, as `metadata.model` names it."""
        return self.inside.name

    @property
    def engine(self) -> str:
        """The model in a few words for people."""
        return self.inside.engine

    @property
    def needs_readings(self) -> bool:
        """Whether the section reader reads the passages before it writes."""
        return self.inside.needs_readings

    def write(self, task: Task) -> AsyncGenerator[WriterEvent, None]:
        """The statements in reading order, then `Finished`."""
        return self.inside.write(task)

    async def rewrite(self, question: str, history: Sequence[Turn]) -> tuple[str, Finished]:
        """A follow-up as a question that stands alone."""
        return await self.inside.rewrite(question, history)

    async def probe(self) -> None:
        """Raise `AgentUnavailable` if it cannot be used now."""
        await self.inside.probe()

    async def close(self) -> None:
        """Let go of connections and models."""
        await self.inside.close()
