"""A real broker (mosquitto): events, state after an outage, discovery, corrections."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from verse.types import BadSetting
from verse.watch.events import Scene, Sighting
from verse.watch.mqtt import MQTT, discovery_messages, read_lesson

pytest.importorskip("paho.mqtt.client", reason="MQTT needs the extra mqtt (paho-mqtt)")
MOSQUITTO = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin")
needs_broker = pytest.mark.skipif(MOSQUITTO is None, reason="no mosquitto on this machine")


class Broker:
    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.file = folder / "mosquitto.conf"
        self.file.write_text(f"listener {self.port} 127.0.0.1\nallow_anonymous true\n")
        self.start()

    def start(self) -> None:
        assert MOSQUITTO is not None
        quiet = subprocess.DEVNULL
        self.process = subprocess.Popen([MOSQUITTO, "-c", self.file], stdout=quiet, stderr=quiet)
        wait_until(self.answers)

    def answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


class Ear:
    """Another client that hears everything."""

    def __init__(self, port: int) -> None:
        from paho.mqtt.client import Client
        from paho.mqtt.enums import CallbackAPIVersion

        self.heard: dict[str, list[str]] = {}
        self.client = Client(CallbackAPIVersion.VERSION2)
        self.client.on_connect = lambda client, *_: client.subscribe("#", qos=1)
        subscribed = threading.Event()
        self.client.on_subscribe = lambda *_: subscribed.set()
        self.client.on_message = lambda _c, _d, m: self.heard.setdefault(m.topic, []).append(
            m.payload.decode(errors="replace")
        )
        self.client.connect("127.0.0.1", port)
        self.client.loop_start()
        assert subscribed.wait(90), "the broker does not answer"  # or the first event is missed

    def last(self, topic: str) -> str:
        return self.heard.get(topic, [""])[-1]

    def close(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()


def wait_until(condition: Callable[[], object], patience: float = 90.0) -> None:
    end = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    broker = Broker(tmp_path)
    yield broker
    broker.kill()


def see(scene: Scene, sink: MQTT, label: str) -> None:
    event = scene.see(0.0, Sighting(label, True, 0.9))
    assert event is not None
    sink.send(event)


@needs_broker
def test_events_state_discovery_and_availability(broker: Broker) -> None:
    ear = Ear(broker.port)
    sink = MQTT(f"mqtt://127.0.0.1:{broker.port}/home/door")
    see(Scene("door", hold=0), sink, "cup")
    wait_until(lambda: "cup" in ear.last("home/door/event"))
    wait_until(lambda: json.loads(ear.last("home/door/state"))["state"] == "cup")
    assert ear.last("home/door/available") == "online"
    config = json.loads(ear.last("homeassistant/sensor/verse_home_door_seen/config"))
    assert config["state_topic"] == "home/door/state"
    sink.close()
    wait_until(lambda: ear.last("home/door/available") == "offline")
    ear.close()


@needs_broker
def test_after_a_killed_broker_the_state_is_right(broker: Broker) -> None:
    told: list[str] = []
    sink = MQTT(f"mqtt://127.0.0.1:{broker.port}/door", tell=told.append)
    scene = Scene("door", hold=0)
    see(scene, sink, "cup")
    wait_until(lambda: any("connected" in line for line in told))
    broker.kill()
    wait_until(lambda: any("is gone" in line for line in told))
    see(scene, sink, "dog")  # nobody hears this one now
    broker.start()
    ear = Ear(broker.port)
    wait_until(lambda: ear.heard.get("door/state"))
    wait_until(lambda: json.loads(ear.last("door/state"))["state"] == "dog")
    sink.close()
    ear.close()


@needs_broker
def test_a_slow_broker_holds_nobody_up(broker: Broker) -> None:
    told: list[str] = []
    sink = MQTT(f"mqtt://127.0.0.1:{broker.port}/door", tell=told.append)
    wait_until(lambda: told)
    broker.process.send_signal(signal.SIGSTOP)
    scene = Scene("door", hold=0)
    for i in range(200):  # who waited for this broker would wait for ever
        see(scene, sink, f"label {i}")
    broker.process.send_signal(signal.SIGCONT)
    ear = Ear(broker.port)
    wait_until(lambda: "label 199" in ear.last("door/state"))
    sink.close()
    ear.close()


@needs_broker
def test_lessons_arrive(broker: Broker) -> None:
    told: list[str] = []
    sink = MQTT(f"mqtt://127.0.0.1:{broker.port}/door", teach_topic="door/teach", tell=told.append)
    wait_until(lambda: told)
    ear = Ear(broker.port)
    ear.client.publish("door/teach", "cup", qos=1)
    assert sink.lessons.get(timeout=90) == "cup"
    ear.client.publish("door/teach", b"\xff\xfe", qos=1)
    wait_until(lambda: "ignored" in told[-1])
    sink.close()
    ear.close()


def test_a_topic_that_may_not_be_read_is_told() -> None:
    """As a broker with access lists answers; mosquitto's own lists let subscribe to everything."""
    from paho.mqtt.packettypes import PacketTypes
    from paho.mqtt.reasoncodes import ReasonCode

    told: list[str] = []
    sink = MQTT("mqtt://127.0.0.1:1/door", teach_topic="door/teach", tell=told.append)
    refused = ReasonCode(PacketTypes.SUBACK, "Not authorized")
    sink._client.on_subscribe(sink._client, None, 1, [refused], None)
    sink.close()
    assert any("nobody can teach" in line for line in told)


@pytest.mark.parametrize(
    "url", ["http://host/topic", "mqtt://host", "mqtt:///topic", "mqtt://h/a/#"]
)
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(BadSetting):
        MQTT(url)


def test_hostile_lessons_are_no_lessons() -> None:
    assert read_lesson(b"x" * 5000) is None
    assert read_lesson(b'{"label": 5}') is None
    assert read_lesson(b"{broken") is None
    assert read_lesson(b"  ") is None


def test_discovery_has_an_identity_of_plain_characters() -> None:
    topics = discovery_messages("my house/front door", "homeassistant")
    assert "homeassistant/sensor/verse_my_house_front_door_seen/config" in topics
