"""A camera that reports: frames of a camera, stream, film or folder become events.

Belongs here: sources of live frames, the rule that makes events of answers, and the targets of
events (a file, a webhook, an MQTT broker). Does not belong here: teaching from videos
(``verse.video``), the service, and code for one camera maker.
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
