"""Limits for documents that are ZIP files (EPUB, docx)."""

import lzma
import struct
import zipfile
import zlib
from typing import Final

from chapterverse.ingestion.document import Unreadable

_LARGEST: Final = 200 * 1024 * 1024  # bytes of all files, unpacked
_DENSEST: Final = 200  # maximum ratio of unpacked to packed size; text has about 10
_SMALL: Final = 10 * 1024 * 1024  # unpacked bytes up to which the ratio is not checked
_MOST_FILES: Final = 50_000

# Exceptions that `zipfile` raises for damaged files, because it trusts their lengths, offsets and encodings.
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
    """Raise Unreadable for an archive that is encrypted, has too many files or unpacks to too much data."""
    files = archive.infolist()
    size = sum(info.file_size for info in files)
    if len(files) > _MOST_FILES:
        raise Unreadable(f"has {len(files):,} files")
    if size > _LARGEST:
        raise Unreadable(f"unpacks to {size // 2**20} MiB, more than {_LARGEST // 2**20}")
    if size > _SMALL and size > _DENSEST * packed:
        raise Unreadable("unpacks to far too much data (a ZIP bomb)")
    if any(info.flag_bits & 1 for info in files):
        raise Unreadable("is encrypted")
