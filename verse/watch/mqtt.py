"""Events to an MQTT broker, with Home Assistant's discovery, and corrections from it."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from verse import __version__
from verse.extras import OptionalImport
from verse.types import BadSetting
from verse.watch.events import SceneEvent
from verse.watch.sinks import QUEUE, Sink

if TYPE_CHECKING:
    from paho.mqtt.client import Client

PASSWORD = "VERSE_MQTT_PASSWORD"


class MQTT(Sink):
    """Publishes events and the present scene; a broker that goes away is joined again.

    Below the topic ``BASE``: ``BASE/event`` has each event, ``BASE/state`` the present scene
    (retained, and published again whenever the broker comes back, so that it is right after an
    outage), ``BASE/available`` says ``online`` or ``offline`` (also when this process dies).

    Parameters
    ----------
    url
        ``mqtt://[user[:password]@]host[:port]/base/topic``, or ``mqtts://`` with TLS. The password
        may stand in the environment variable VERSE_MQTT_PASSWORD instead.
    discovery
        Prefix of Home Assistant's discovery messages; None sends none.
    teach_topic
        Messages on it teach: a label as text, or ``{"label": "cup"}``. They wait in ``lessons``.
    tell
        Gets sentences for people.
    """

    def __init__(
        self,
        url: str,
        *,
        discovery: str | None = "homeassistant",
        teach_topic: str | None = None,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        with OptionalImport():
            from paho.mqtt.client import Client
            from paho.mqtt.enums import CallbackAPIVersion
        address = urlsplit(url)
        self.base = address.path.strip("/")
        if address.scheme not in ("mqtt", "mqtts") or not address.hostname or not self.base:
            raise BadSetting(f"a broker is mqtt://HOST[:PORT]/TOPIC, not {url!r}")
        if "+" in self.base or "#" in url:
            raise BadSetting("a topic to publish to has no + or #")
        self.lessons: queue.Queue[str] = queue.Queue(maxsize=100)
        self._discovery, self._teach_topic, self._tell = discovery, teach_topic, tell
        self._lock = threading.Lock()
        self._state: str | None = None
        self._client: Client = Client(CallbackAPIVersion.VERSION2)
        if address.username:
            password = unquote(address.password) if address.password else os.environ.get(PASSWORD)
            self._client.username_pw_set(unquote(address.username), password)
        if address.scheme == "mqtts":
            self._client.tls_set()
        self._client.max_queued_messages_set(QUEUE)
        self._client.reconnect_delay_set(min_delay=1, max_delay=30)
        self._client.will_set(f"{self.base}/available", "offline", qos=1, retain=True)
        self._client.on_connect = self._greet
        self._client.on_subscribe = self._listen
        self._client.on_disconnect = self._part
        self._client.on_message = self._hear
        port = address.port or (8883 if address.scheme == "mqtts" else 1883)
        self._broker = f"{address.hostname}:{port}"
        self._client.connect_async(address.hostname, port, keepalive=20)
        self._client.loop_start()

    def send(self, event: SceneEvent) -> None:
        document = event.document()
        with self._lock:
            self._client.publish(f"{self.base}/event", json.dumps(document), qos=1)
            self._state = json.dumps({**document, "state": scene_word(event)})
            self._client.publish(f"{self.base}/state", self._state, qos=1, retain=True)

    def close(self) -> None:
        if self._client.is_connected():
            parting = self._client.publish(f"{self.base}/available", "offline", qos=1, retain=True)
            with contextlib.suppress(RuntimeError):  # the connection went away meanwhile
                parting.wait_for_publish(2)
        self._client.disconnect()
        self._client.loop_stop()

    # ---- callbacks, in the client's own thread ----------------------------------------------

    def _greet(self, client: Client, _data: Any, _flags: Any, reason: Any, _more: Any) -> None:
        if reason.is_failure:
            self._tell(f"the broker {self._broker} refuses: {reason}")
            return
        with self._lock:
            if self._discovery is not None:
                for topic, document in discovery_messages(self.base, self._discovery).items():
                    client.publish(topic, json.dumps(document), qos=1, retain=True)
            client.publish(f"{self.base}/available", "online", qos=1, retain=True)
            if self._state is not None:  # what changed during an outage
                client.publish(f"{self.base}/state", self._state, qos=1, retain=True)
            if self._teach_topic is not None:
                client.subscribe(self._teach_topic, qos=1)
        if self._teach_topic is None:
            self._tell_connected()

    def _listen(self, _client: Any, _data: Any, _id: Any, reasons: Any, _more: Any) -> None:
        """The broker took the subscription: from now on no lesson is missed."""
        self._tell_connected()
        if any(reason.is_failure for reason in reasons):
            self._tell(f"the broker refuses the topic {self._teach_topic}: nobody can teach by it")

    def _tell_connected(self) -> None:
        self._tell(f"connected to the broker {self._broker}")

    def _part(self, _client: Client, _data: Any, _flags: Any, reason: Any, _more: Any) -> None:
        if reason.is_failure:
            self._tell(f"the broker {self._broker} is gone ({reason}); trying again")

    def _hear(self, _client: Client, _data: Any, message: Any) -> None:
        label = read_lesson(message.payload)
        if label is None:
            self._tell(f"{message.topic}: a lesson is a label or {{'label': …}}; ignored")
            return
        try:
            self.lessons.put_nowait(label)
        except queue.Full:
            self._tell("too many lessons wait; this one is ignored")


def read_lesson(payload: bytes) -> str | None:
    """The label of a message: plain text, or a JSON object with ``label``; None if neither.

    >>> read_lesson(b"cup"), read_lesson(b'{"label": "cup"}'), read_lesson(b"")
    ('cup', 'cup', None)
    """
    if len(payload) > 4096:
        return None
    try:
        text = payload.decode()
    except UnicodeDecodeError:
        return None
    if text.lstrip().startswith("{"):
        try:
            document = json.loads(text)
        except ValueError:
            return None
        text = document.get("label") if isinstance(document.get("label"), str) else ""
    return text.strip() or None


def scene_word(event: SceneEvent) -> str:
    """One word for the present scene: a label, ``unknown``, or ``nothing``."""
    if event.kind == "unknown":
        return "unknown"
    return "nothing" if event.label is None else str(event.label)


def discovery_messages(base: str, prefix: str) -> dict[str, dict[str, Any]]:
    """Topic → document for Home Assistant: what is seen, and whether it is something unknown."""
    identity = "verse_" + re.sub(r"[^a-zA-Z0-9_-]+", "_", base)
    common = {
        "state_topic": f"{base}/state",
        "availability_topic": f"{base}/available",
        "device": {"identifiers": [identity], "name": f"verse {base}", "sw_version": __version__},
    }
    seen = common | {
        "name": "Seen",
        "unique_id": f"{identity}_seen",
        "value_template": "{{ value_json.state }}",
        "json_attributes_topic": f"{base}/state",
        "icon": "mdi:eye",
    }
    unknown = common | {
        "name": "Something unknown",
        "unique_id": f"{identity}_unknown",
        "value_template": "{{ 'ON' if value_json.state == 'unknown' else 'OFF' }}",
        "icon": "mdi:help-circle",
    }
    return {
        f"{prefix}/sensor/{identity}_seen/config": seen,
        f"{prefix}/binary_sensor/{identity}_unknown/config": unknown,
    }
