"""When an answer becomes an event."""

from __future__ import annotations

from verse.watch.events import Scene, SceneEvent, Sighting

CUP, DOG = Sighting("cup", True, 0.9), Sighting("dog", True, 0.8)
EMPTY, UNKNOWN = Sighting("table", True, 0.9), Sighting(None, False)


def see_all(scene: Scene, *stretches: tuple[Sighting, float]) -> list[SceneEvent]:
    """Show each sighting for so many seconds, ten frames a second."""
    events, time = [], 0.0
    for sighting, seconds in stretches:
        for _ in range(round(10 * seconds)):
            events.append(scene.see(time, sighting))
            time += 0.1
    return [event for event in events if event is not None]


def test_appeared_changed_unknown_and_gone() -> None:
    scene = Scene("door", hold=0.5, background=["table"])
    events = see_all(scene, (EMPTY, 2), (CUP, 2), (DOG, 2), (UNKNOWN, 2), (CUP, 2), (EMPTY, 2))
    assert [(e.kind, e.label, e.previous) for e in events] == [
        ("appeared", "cup", None),
        ("changed", "dog", "cup"),
        ("unknown", None, "dog"),
        ("appeared", "cup", None),
        ("gone", None, "cup"),
    ]


def test_short_flicker_is_no_event() -> None:
    scene = Scene("door", hold=0.5)
    assert [e.kind for e in see_all(scene, (CUP, 1))] == ["appeared"]
    flicker = [(DOG, 0.2), (CUP, 0.2)] * 10
    assert see_all(scene, *flicker) == []


def test_two_flickering_answers_do_not_add_up() -> None:
    scene = Scene("door", hold=0.5)
    assert see_all(scene, *[(DOG, 0.3), (CUP, 0.3)] * 10) == []


def test_without_hold_every_change_counts() -> None:
    scene = Scene("door", hold=0)
    assert [e.label for e in see_all(scene, (CUP, 0.1), (DOG, 0.1))] == ["cup", "dog"]


def test_an_outage_keeps_the_scene_and_drops_half_seen_changes() -> None:
    scene = Scene("door", hold=0.5)
    see_all(scene, (CUP, 1))
    scene.see(1.0, DOG)
    assert scene.interrupt(1.1).kind == "offline"
    assert scene.resume(60.0).label == "cup"
    assert scene.see(60.0, DOG) is None  # must last again
    changed = scene.see(60.6, DOG)
    assert changed is not None and (changed.kind, changed.previous) == ("changed", "cup")


def test_document_is_plain_json() -> None:
    scene = Scene("door", hold=0)
    event = scene.see(1.23456, CUP)
    assert event is not None
    document = event.document()
    assert document["event"] == "appeared" and document["seconds"] == 1.235
    assert set(document) == {
        "event",
        "label",
        "previous",
        "confidence",
        "seconds",
        "source",
        "time",
    }
