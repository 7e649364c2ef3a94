"""The two threads: order, snapshots, history, closing."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch

import verse
from verse import StreamClassifier
from verse.serve.errors import Closing
from verse.serve.pictures import Picture
from verse.serve.progress import POINTS, EventRate, Prequential
from verse.serve.session import Session
from verse.serve.snapshot import PublishedState


def test_learning_in_a_session_is_learning_in_order(session, decoded, backbone) -> None:
    """Grouped commits, answers asked before each: weights and memory are those of a plain loop."""
    session.start()
    lessons = [(decoded(label, t), label) for t in range(4) for label in ("red", "blue")]
    answers = [session.learn(image, label, f"k{i}") for i, (image, label) in enumerate(lessons)]
    assert [answer.result(60).seq for answer in answers] == list(range(1, 9))
    plain = StreamClassifier(backbone=backbone)
    for image, label in lessons:
        plain.learn_one(image.encoded, label)
    a, b = session.classifier.learner.state(), plain.learner.state()
    assert all(torch.equal(a[k], b[k]) for k in b)
    answer = session.predict(lessons[0][0]).result(60)
    assert answer.answer == plain.ask(lessons[0][0].encoded)


def test_a_refused_sample_harms_no_other(session, decoded) -> None:
    broken = Picture(np.zeros((3, 3, 3), np.uint8), np.zeros((3, 3, 3), np.uint8), b"")
    answers = [session.learn(sample, "red") for sample in (decoded(), broken, decoded("red", 1))]
    session.start()
    with pytest.raises(Exception, match=r"dimension|shape|size"):
        answers[1].result(60)
    assert answers[0].result(60).seq == 1 and answers[2].result(60).seq == 2


def test_the_same_key_twice_in_one_group(session, decoded) -> None:
    answers = [session.learn(decoded(), "red", "same") for _ in range(4)]
    session.start()
    assert {answer.result(60).seq for answer in answers} == {1}
    assert session.classifier.samples == 1


def test_changes_keep_their_place_among_lessons(session, decoded) -> None:
    first = session.learn(decoded(), "red")
    undone = session.undo([1])
    second = session.learn(decoded("blue"), "blue")
    renamed = session.rename("blue", "navy")
    third = session.learn(decoded("blue", 1), "navy")
    session.start()
    assert first.result(60).seq == 1 and undone.result(60) == [(1, "red")]
    assert second.result(60).samples == 1 and renamed.result(60) is None
    assert third.result(60).samples == 2 and third.result().classes == 1
    assert session.view.classes[0].label == "navy"
    assert session.view.classes[0].thumbnails == (3, 5)  # undo and rename are entries, too


def test_who_leaves_before_his_turn_is_passed_over(session, decoded) -> None:
    gone = [session.learn(decoded(), "red"), session.undo([1]), session.predict(decoded())]
    assert all(answer.cancel() for answer in gone)
    stays = session.learn(decoded("blue"), "blue")
    session.start()
    assert (
        stays.result(60).seq == 1 and session.predict(decoded()).result(60).answer.nearest == "blue"
    )
    assert session.ready and session.classifier.classes == ["blue"]


def test_forgotten_without_room_to_wipe(session, decoded, monkeypatch) -> None:
    from verse import checkpoint
    from verse.durable import JournalFull

    session.start()
    session.learn(decoded(), "red").result(60)
    session.learn(decoded("blue"), "blue").result(60)

    def no_room(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "write", no_room)
        with pytest.raises(JournalFull, match="not yet wiped"):
            session.forget("red").result(60)
    assert [c.label for c in session.view.classes] == ["blue"] and session.thumbnail(1) is None
    assert session.predict(decoded()).result(60).answer.nearest == "blue"


def test_listeners_hear_every_change(session, decoded) -> None:
    heard: list[tuple[str, dict]] = []
    session.listen(lambda kind, data: heard.append((kind, data)))
    session.start()
    session.learn(decoded(), "red", "k").result(60)
    session.learn(decoded(), "red", "k").result(60)
    session.rename("red", "pink").result(60)
    session.undo([1]).result(60)
    assert [kind for kind, _ in heard] == ["learned", "class", "undone"]
    assert heard[1][1] == {"change": "renamed", "label": "red", "to": "pink"}
    assert heard[2][1] == {"seq": 1, "label": "red"}


def test_closing_finishes_what_waits_and_refuses_the_rest(
    session, decoded, tmp_path, backbone
) -> None:
    waiting = [session.learn(decoded("red", t), "red") for t in range(6)]
    session.start()
    session.close()
    assert [answer.result(0).seq for answer in waiting] == list(range(1, 7))
    for late in (lambda: session.learn(decoded(), "red"), lambda: session.predict(decoded())):
        with pytest.raises(Closing):
            late()
    with verse.open(tmp_path / "taught", backbone=backbone) as again:
        assert again.samples == 6 and len(again.thumbnails()) == 6
        second = Session(again)
        assert second.view.points == session.view.points and len(second.view.points) == 5
        assert second.view.classes == session.view.classes


def test_a_snapshot_is_never_torn(tmp_path) -> None:
    """A reader in a tight loop beside a writer: every answer is of exactly one step."""
    backbone = verse.backbones.identity((4,))
    with verse.open(tmp_path, backbone=backbone, durable="batch") as classifier:
        published = PublishedState(classifier)
        z = torch.ones(4)
        expected = {0: {}}
        answers = []
        done = threading.Event()

        def read() -> None:
            while not done.is_set():
                answers.append(published.answer(z))

        reader = threading.Thread(target=read)
        reader.start()
        for t in range(60):
            classifier.learn_feature(torch.eye(4)[t % 4], f"class {t // 8}")
            expected[t + 1] = classifier.predict_feature(z).probabilities
            published.publish(classifier)
        done.set()
        reader.join()
    assert len({answer.step for answer in answers}) > 1
    for answer in answers:
        assert answer.probabilities == expected[answer.step]
    steps = [answer.step for answer in answers]
    assert steps == sorted(steps)


def test_progress(tmp_path) -> None:
    history = Prequential()
    assert history.accuracy is None
    for t in range(1, 1001):
        history.add(t, t > 900)
    assert history.accuracy == 1.0 and len(history.points) <= POINTS
    assert history.points[-1] == (1000, 1.0) and history.points[0][0] < 300
    history.save(tmp_path / "h.json")
    again = Prequential.load(tmp_path / "h.json")
    assert again.points == history.points and again.accuracy == 1.0
    (tmp_path / "h.json").write_text('{"window": 3}')
    assert Prequential.load(tmp_path / "h.json").points == []
    rate = EventRate()
    assert rate.per_second() == 0
    rate.tick(10)
    rate.tick()
    assert rate.per_second() == 11 / 5
