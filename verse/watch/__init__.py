"""A camera that reports: frames of a camera, stream, film or folder become events.

Here goes where live frames come from, when an answer becomes an event, and where events go (a
file, a webhook, an MQTT broker). Teaching from films (``verse.video``), the service and anything
about one camera maker do not.
"""

from __future__ import annotations

from verse.watch.events import Scene, SceneEvent
from verse.watch.frames import Frame, open_frames
from verse.watch.loop import Watcher
from verse.watch.sinks import JSONLines, Sink, Webhook

__all__ = [
    "SceneEvent",
    "Frame",
    "JSONLines",
    "Scene",
    "Sink",
    "Watcher",
    "Webhook",
    "open_frames",
]
