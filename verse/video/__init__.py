"""Videos and cameras: their frames in time, labels by ranges of time, answers as a time line.

Belongs here: code that reads video files and cameras. Does not belong here: events
(``verse.watch``), and learning from frames.

A source is a film file, ``camera:0`` (the first camera of this machine), or a network camera's
address (``rtsp://…``, ``http://…``). Decoding is PyAV's (the extra ``video``).
"""

from __future__ import annotations

from verse.video.ranges import Range, label_at, read_ranges, sidecar
from verse.video.source import Shot, is_live, is_video, shots
from verse.video.timeline import Span, clock, spans

__all__ = [
    "Range",
    "Shot",
    "Span",
    "clock",
    "is_live",
    "is_video",
    "label_at",
    "read_ranges",
    "shots",
    "sidecar",
    "spans",
]
