"""The bundled section reader: a trained model that scores which units of a passage answer a question."""

from chapterverse.trained.section_reader import UNREAD, Passage, Read, SectionReader, shared_reader

__all__ = ["UNREAD", "Passage", "Read", "SectionReader", "shared_reader"]
