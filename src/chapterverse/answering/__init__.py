"""Answering: one question, from the reader's words to proven statements or a refusal."""

from chapterverse.answering.confidence import DISCLAIMER
from chapterverse.answering.scope import Scope, Selection, WholeBook
from chapterverse.answering.story import Prepared, fold, prepare, stream

__all__ = ["DISCLAIMER", "Prepared", "Scope", "Selection", "WholeBook", "fold", "prepare", "stream"]
