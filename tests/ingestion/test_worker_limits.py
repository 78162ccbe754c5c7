import pytest

from chapterverse.ingestion.document import Document
from chapterverse.ingestion.worker_limits import ReadLimits


@pytest.mark.parametrize(("form", "times"), [("markdown", 1), ("pdf", 5), ("epub", 5), ("docx", 5)])
def test_reply_to_a_packed_document_may_be_larger(form: str, times: int) -> None:
    limits = ReadLimits(reply=100, growth=2)
    assert limits.reply_for(Document("x", "x", "x", form, b"0123456789")) == 100 + 20 * times
