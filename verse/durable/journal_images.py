"""Images that the journal keeps: thumbnails of the newest samples, and all images by option."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

from verse.durable.entry import Statement
from verse.durable.errors import damage_error

THUMBNAILS = 12  # kept of each class
READ = "SELECT seq, label, image, crc FROM images WHERE kind=? ORDER BY seq"


def image_crc(seq: int, label: str, image: bytes) -> int:
    """Checksum of an image; SQL calls this function by the same name."""
    return zlib.crc32(image, zlib.crc32(label.encode(), seq))


def keep(seq: int, label: Any, images: Mapping[str, bytes]) -> Iterator[Statement]:
    """Images by their kind ("thumbnail", "image") go with an entry."""
    for kind, image in images.items():
        yield (
            "INSERT INTO images VALUES (?1, ?2, ?3, ?4, image_crc(?1, ?3, ?4))",
            (seq, kind, json.dumps(label), image),
        )
    if "thumbnail" in images:
        yield _only_newest_thumbnails(label)


def drop(seq: int) -> Statement:
    """The images of an entry go."""
    return "DELETE FROM images WHERE seq=?", (seq,)


def relabel_images(label: Any, new: Any) -> Iterator[Statement]:
    """Images of one label get another, or go if it is None."""
    old = json.dumps(label)
    if new is None:
        yield "DELETE FROM images WHERE label=?", (old,)
        return
    yield (
        "UPDATE images SET label=?1, crc=image_crc(seq, ?1, image) WHERE label=?2",
        (json.dumps(new), old),
    )
    yield _only_newest_thumbnails(new)


def check_images(kind: str, rows: Iterator[tuple[Any, ...]]) -> Iterator[tuple[int, Any, bytes]]:
    """(seq, label, encoded image) of the rows that ``READ`` found; a damaged one is an error."""
    for seq, label, image, crc in rows:
        if not isinstance(image, bytes) or image_crc(seq, label, image) != crc:
            raise damage_error(f"the {kind} of entry {seq}")
        yield seq, json.loads(label), image


def _only_newest_thumbnails(label: Any) -> Statement:
    return (
        "DELETE FROM images WHERE kind='thumbnail' AND label=?1 AND seq NOT IN (SELECT seq FROM"
        " images WHERE kind='thumbnail' AND label=?1 ORDER BY seq DESC LIMIT ?2)",
        (json.dumps(label), THUMBNAILS),
    )
