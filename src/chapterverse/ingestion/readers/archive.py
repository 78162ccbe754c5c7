"""ZIP files that hold a document (EPUB, docx), with limits on what they unpack to."""

import lzma
import struct
import zipfile
import zlib
from typing import Final

from chapterverse.ingestion.document import Unreadable

_LARGEST: Final = 200 * 1024 * 1024  # bytes of all files, unpacked
_DENSEST: Final = 200  # times a whole archive may grow when unpacked; text grows some ten times
_SMALL: Final = 10 * 1024 * 1024  # bytes up to which growth does not matter
_MOST_FILES: Final = 50_000

# What the archive's reader raises on damage: it trusts lengths, places and encodings that the file states.
DAMAGE: Final = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    NotImplementedError,
    EOFError,
    ValueError,
    OSError,
)


def refuse_bombs(archive: zipfile.ZipFile, packed: int) -> None:
    """Refuses an archive that is encrypted or unpacks to more than a document would."""
    files = archive.infolist()
    size = sum(info.file_size for info in files)
    if len(files) > _MOST_FILES:
        raise Unreadable(f"holds {len(files):,} files")
    if size > _LARGEST:
        raise Unreadable(f"unpacks to {size // 2**20} MiB, more than {_LARGEST // 2**20}")
    if size > _SMALL and size > _DENSEST * packed:
        raise Unreadable("unpacks to far more than a book would (a ZIP bomb)")
    if any(info.flag_bits & 1 for info in files):
        raise Unreadable("is encrypted")
