"""The trained section reader that ships: it reads a question with a passage and says which units answer."""

from chapterverse.trained.section_reader import UNREAD, Passage, Read, SectionReader, shared_reader

__all__ = ["UNREAD", "Passage", "Read", "SectionReader", "shared_reader"]
