"""The routes: what they answer, and what becomes of errors."""

from __future__ import annotations

import io
import json
import threading
import time
from urllib.parse import quote

import numpy as np
import pytest
import torch
from PIL import Image

from tests.serve.old_folders import teach_anyway
from verse import StreamClassifier
from verse.serve import app as module
from verse.serve import pictures
from verse.serve.errors import NotFound
from verse.serve.events import Events, stream_events
from verse.serve.pictures import AnsweredFrame, AnsweredFrames

TWO = ("red", "blue")


def learn(client, image: bytes, label: str, key: str | None = None):
    headers = {"Idempotency-Key": key} if key else {}
    return client.post("/v1/learn", files={"image": image}, data={"label": label}, headers=headers)


def ask(client, image: bytes):
    return client.post("/v1/predict", files={"image": image})


def test_teach_then_ask(serve, picture) -> None:
    client = serve()
    first = ask(client, picture("red")).json()
    assert isinstance(first.pop("frame"), str)
    assert first == {
        "label": None,
        "nearest": None,
        "known": False,
        "novelty": None,
        "confidence": 0.0,
        "probabilities": [],
        "step": 0,
    }
    for t in range(18):
        label = ["red", "green", "blue"][t % 3]
        answer = learn(client, picture(label, t), label)
        assert answer.status_code == 200
        assert answer.json()["seq"] == answer.json()["samples"] == t + 1
    assert answer.json()["classes"] == 3
    assert answer.json()["prequential"] == {
        "label": answer.json()["prequential"]["label"],
        "correct": answer.json()["prequential"]["label"] == "blue",
    }
    for label in ("red", "green", "blue"):
        answer = ask(client, picture(label, 99)).json()
        assert answer["label"] == label and answer["step"] == 18
        shares = [share["p"] for share in answer["probabilities"]]
        assert shares == sorted(shares, reverse=True) and sum(shares) == pytest.approx(1, abs=1e-4)
        assert answer["confidence"] == shares[0]


def test_the_learner_and_its_settings(serve) -> None:
    found = serve().get("/v1/learner").json()
    assert found["name"] == "verse-joint" and found["settings"]["lam"] == 0.03
    assert set(found["schema"]["properties"]) == set(found["settings"])


def test_looking(serve, picture) -> None:
    client = serve()
    empty = client.get("/v1/status").json()
    assert empty["samples"] == 0 and empty["prequential"] == {"accuracy": None, "window": []}
    for t in range(15):
        learn(client, picture("red", t), "red")
    learn(client, picture("blue"), "blue")
    red, blue = client.get("/v1/classes").json()
    assert (red["label"], red["taught"], red["remembered"]) == ("red", 15, 15)
    assert red["thumbnails"] == list(range(4, 16)) and blue["thumbnails"] == [16]
    status = client.get("/v1/status").json()
    assert status["samples"] == status["step"] == 16 and status["classes"] == 2
    assert status["queue"] == {"length": 0, "limit": 8}
    assert status["memory"]["samples"] == 16 and status["memory"]["bytes"] > 16 * 1280 * 4
    assert status["rates"]["learn_per_s"] > 0
    assert status["prequential"]["accuracy"] == pytest.approx(14 / 15)
    assert status["prequential"]["window"][-1] == [16, pytest.approx(14 / 15, abs=1e-4)]
    assert status["auth"] == {"learn": False, "predict": False}
    assert (status["learner"], status["backbone"]) == ("verse-joint", "efficientnet-lite0")
    jpeg = client.get("/v1/samples/16/thumbnail")
    assert jpeg.headers["content-type"] == "image/jpeg"
    assert Image.open(io.BytesIO(jpeg.content)).size == (48, 40)
    assert client.get("/v1/samples/1/thumbnail").status_code == 404  # only the newest stay
    assert client.get("/v1/samples/0/thumbnail").status_code == 422


def test_a_key_is_learned_once(serve, picture, session) -> None:
    client = serve()
    first = learn(client, picture("red"), "red", "k").json()
    second = learn(client, picture("red"), "red", "k").json()
    assert first["seq"] == second["seq"] == 1 and session.classifier.samples == 1
    assert second["prequential"] == {"label": None, "correct": None}
    assert learn(client, picture("blue"), "red", "k").status_code == 409  # another picture
    assert learn(client, picture("red"), "blue", "k").status_code == 409  # another label
    client.delete("/v1/samples/1")
    undone = learn(client, picture("red"), "red", "k")
    assert undone.status_code == 409 and "then undone" in undone.json()["detail"]
    assert session.classifier.samples == 0


def test_undo_forget_rename_merge(serve, picture) -> None:
    client = serve()
    for t in range(9):
        label = ["red", "green", "blue"][t % 3]
        learn(client, picture(label, t), label)
    undone = client.delete("/v1/samples/9")
    assert undone.json() == {"seq": 9, "label": "blue", "samples": 8}
    assert client.delete("/v1/samples/9").status_code == 409
    assert client.delete("/v1/samples/77").status_code == 409
    assert client.get("/v1/samples/9/thumbnail").status_code == 404

    renamed = client.post("/v1/classes/red/rename", json={"to": " my mug & <b> "})
    assert renamed.json() == {"label": "my mug & <b>"}
    assert ask(client, picture("red")).json()["label"] == "my mug & <b>"
    path = "/v1/classes/my%20mug%20%26%20%3Cb%3E"
    assert client.post(f"{path}/rename", json={"to": "green"}).status_code == 409
    assert client.post(f"{path}/merge", json={"into": "green"}).json() == {
        "into": "green",
        "moved": 3,
    }
    assert [c["label"] for c in client.get("/v1/classes").json()] == ["green", "blue"]
    assert client.get("/v1/classes").json()[0]["taught"] == 6
    assert len(client.get("/v1/classes").json()[0]["thumbnails"]) == 6
    assert client.post("/v1/classes/green/merge", json={"into": "green"}).status_code == 409
    assert client.post("/v1/classes/green/merge", json={"into": "zebra"}).status_code == 404

    assert client.delete("/v1/classes/green").json() == {"label": "green", "removed": 6}
    assert client.delete("/v1/classes/green").status_code == 404
    assert [c["label"] for c in client.get("/v1/classes").json()] == ["blue"]
    assert client.get("/v1/samples/1/thumbnail").status_code == 404
    assert client.delete("/v1/samples/8").status_code == 409  # before the forgetting


def test_a_class_is_forgotten_exactly(serve, picture, session) -> None:
    client = serve()
    for t in range(6):
        learn(client, picture(["red", "blue"][t % 2], t), ["red", "blue"][t % 2])
    answer = client.delete("/v1/classes/blue?exact=true")
    assert answer.json() == {"label": "blue", "removed": 3} and session.classifier.samples == 3
    assert [c["label"] for c in client.get("/v1/classes").json()] == ["red"]


def test_several_samples_are_undone_in_one_request(serve, picture, session) -> None:
    client = serve()
    heard: list[tuple[str, dict]] = []
    session.listen(lambda kind, data: heard.append((kind, data)))
    for t in range(8):
        learn(client, picture(["red", "blue"][t % 2], t), ["red", "blue"][t % 2])
    answer = client.post("/v1/undo", json={"seqs": [3, 8, 3]})
    assert answer.json() == {
        "undone": [{"seq": 8, "label": "blue"}, {"seq": 3, "label": "red"}],
        "samples": 6,
    }
    assert [event for event in heard if event[0] == "undone"] == [
        ("undone", {"seq": 8, "label": "blue"}),
        ("undone", {"seq": 3, "label": "red"}),
    ]
    assert client.post("/v1/undo", json={"seqs": [7, 3]}).status_code == 409  # 3 is gone already
    assert session.classifier.samples == 6  # so 7 stays, too
    assert client.post("/v1/undo", json={"count": 2}).json()["samples"] == 4
    assert client.post("/v1/undo", json={"count": 5}).status_code == 409
    assert session.classifier.undoable == [1, 2, 4, 5]
    for wrong in ({}, {"seqs": []}, {"count": 0}, {"seqs": [1], "count": 1}, {"seqs": [0]}, [1]):
        assert client.post("/v1/undo", json=wrong).status_code == 422


def test_a_frame_is_taught_without_a_second_upload(serve, picture, session, backbone) -> None:
    client = serve()
    frames = [ask(client, picture(label, t)).json()["frame"] for t, label in enumerate(TWO)]
    for frame, label in zip(frames, TWO, strict=True):
        answer = client.post("/v1/learn", data={"label": label, "frame": frame})
        assert answer.status_code == 200 and answer.json()["label"] == label
    plain = StreamClassifier(backbone=backbone)
    for t, label in enumerate(TWO):
        plain.learn_one(picture(label, t), label)
    a, b = session.classifier.learner.state(), plain.learner.state()
    assert all(torch.equal(a[k], b[k]) for k in b)  # the same bits as from the file itself
    jpeg = client.get("/v1/samples/1/thumbnail")
    assert Image.open(io.BytesIO(jpeg.content)).size == (48, 40)
    unknown = client.post("/v1/learn", data={"label": "red", "frame": "never-given"})
    assert unknown.status_code == 404 and "send the image" in unknown.json()["detail"]
    both = client.post(
        "/v1/learn", data={"label": "red", "frame": frames[0]}, files={"image": picture()}
    )
    assert both.status_code == client.post("/v1/learn", data={"label": "red"}).status_code == 422
    assert session.classifier.samples == 2


def test_frames_are_kept_for_a_minute_within_bounds(monkeypatch) -> None:
    frame = AnsweredFrame(torch.zeros(250), np.zeros((0, 0, 3), np.uint8), b"")  # 1,000 bytes
    frames = AnsweredFrames(total=5000, share=3000)
    mine = [frames.add("a", frame) for _ in range(4)]
    other = [frames.add("b", frame) for _ in range(2)]
    with pytest.raises(NotFound):
        frames.get(mine[0])  # a's own oldest went
    assert all(frames.get(name) is frame for name in mine[1:] + other)
    third = frames.add("c", frame)  # the oldest of all goes
    with pytest.raises(NotFound):
        frames.get(mine[1])
    huge = AnsweredFrame(torch.zeros(2500), np.zeros((0, 0, 3), np.uint8), b"")
    with pytest.raises(NotFound):
        frames.get(frames.add("d", huge))  # never larger than a share
    now = time.monotonic()
    monkeypatch.setattr(pictures.time, "monotonic", lambda: now + 61)
    with pytest.raises(NotFound):
        frames.get(third)
    assert not frames and frames.bytes == 0


def test_odd_names_of_classes_are_not_found(serve) -> None:
    client = serve()
    for name in ("--5", "-", "%C2%B2", "0x7", "1e3", "%20", "+5", "5.0", "%D9%A3", "%F0%9F%98%80"):
        assert client.delete(f"/v1/classes/{name}").status_code == 404, name


def test_an_image_is_called_by_its_name(serve) -> None:
    client = serve()
    answer = client.post("/v1/predict", files={"image": ("C:\\photos\\notes.txt", b"hello")})
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith("notes.txt is not a supported image: use JPEG, PNG")


OLD_LABELS = {
    "caf\udce9": "caf\\udce9",
    "\u3164": "\\u3164",
    "a\u2028b": "a\\u2028b",
    "a\nb": "a\\nb",
    "\u200d": "\\u200d",
}


def test_an_old_folder_with_labels_of_no_text_is_answered(serve, session, picture) -> None:
    for t, label in enumerate(OLD_LABELS):
        teach_anyway(session.classifier, picture("red", t), label)
    session.writer.renew()
    client = serve()
    assert [c["label"] for c in client.get("/v1/classes").json()] == [*OLD_LABELS.values()]
    answer = ask(client, picture("red", 1))
    assert answer.status_code == 200
    assert {p["label"] for p in answer.json()["probabilities"]} == {*OLD_LABELS.values()}
    heard: list[dict] = []
    session.listen(lambda kind, data: heard.append(json.loads(json.dumps(data))))
    assert learn(client, picture("blue"), "blue").json()["prequential"]["label"]
    assert client.delete("/v1/samples/1").json()["label"] == "caf\\udce9"
    assert client.get("/metrics").status_code == client.get("/v1/status").status_code == 200
    renamed = client.post(f"/v1/classes/{quote('a' + chr(92) + 'u2028b')}/rename", json={"to": "c"})
    assert renamed.status_code == 200
    merged = client.post(f"/v1/classes/{quote(chr(92) + 'u3164')}/merge", json={"into": "c"})
    assert merged.status_code == 200
    assert client.delete(f"/v1/classes/{quote('a' + chr(92) + 'nb')}").status_code == 200
    left = [c["label"] for c in client.get("/v1/classes").json()]
    assert left == ["c", "\\u200d", "blue"] and "caf" not in str(left)
    assert [data["label"] for data in heard][1] == "caf\\udce9"


def test_classes_taught_as_numbers_are_found(serve, session, picture) -> None:
    session.classifier.learn_one(picture("red"), 7)
    session.writer.renew()
    client = serve()
    assert client.get("/v1/classes").json()[0]["label"] == 7
    assert client.post("/v1/classes/7/rename", json={"to": "seven"}).status_code == 200
    assert client.get("/v1/classes").json()[0]["label"] == "seven"


BAD_LABELS = [
    "",
    "  ",
    "a/b",
    "..",
    "../../etc/passwd",
    "a\\b",
    "a\0b",
    "a\nb",
    "x" * 101,
    "right\u202eleft",
    "\ud7ff\u2028",
    "\x7f",
    "\u200d",
    "\u3164",
    "\u115f",
    "\u2800",
    "\u034f",
    "a\u2028b",
    "a\u2029b",
    "\ufe0f",
    "\u3164 \u200d",
]


@pytest.mark.parametrize("label", BAD_LABELS)
def test_bad_labels_are_refused(serve, picture, session, label) -> None:
    client = serve()
    answer = learn(client, picture(), label)
    assert answer.status_code == 422 and isinstance(answer.json()["detail"], str)
    assert session.classifier.samples == 0


def test_bad_images_are_refused(serve, picture, session) -> None:
    client = serve()
    bomb = io.BytesIO()
    Image.new("1", (7000, 7000)).save(bomb, "PNG")
    for image in (b"", b"junk", picture()[:200], b"GIF89a" + b"\0" * 50, bomb.getvalue()):
        for answer in (learn(client, image, "red"), ask(client, image)):
            assert answer.status_code == 422, answer.text
            assert answer.json()["detail"]
    assert "above the limit of" in ask(client, bomb.getvalue()).json()["detail"]
    assert session.classifier.samples == 0 and session.classifier.journal.last == 0


def test_malformed_requests(serve, picture) -> None:
    client = serve()
    calls = [
        client.post("/v1/learn"),
        client.post("/v1/learn", data={"label": "x"}),
        client.post("/v1/learn", files={"image": picture()}),
        client.post("/v1/predict", content=b"x", headers={"Content-Type": "multipart/form-data"}),
        client.post("/v1/predict", json={"image": "x"}),
        client.post(
            "/v1/classes/x/rename",
            content=b"[" * 50_000,
            headers={"Content-Type": "application/json"},
        ),
        client.post("/v1/classes/x/rename", json={"to": "y", "more": 1}),
        client.delete("/v1/samples/-1"),
        client.delete("/v1/samples/99999999999999999999999"),
        client.delete("/v1/samples/abc"),
        client.get("/v1/nothing"),
        client.put("/v1/learn"),
        client.get("/../../etc/passwd"),
        client.get("/%2e%2e/%2e%2e/pyproject.toml"),
    ]
    for answer in calls:
        assert 400 <= answer.status_code < 500, (answer.request.url, answer.status_code)
        assert isinstance(answer.json()["detail"], str)


def test_operating(serve, picture, session) -> None:
    client = serve()
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/readyz").json() == {"status": "ready"}
    learn(client, picture(), "red")
    metrics = client.get("/metrics").text
    assert "verse_samples 1.0" in metrics
    assert 'verse_requests_total{code="200",route="/v1/learn"} 1.0' in metrics
    document = client.get("/openapi.json").json()
    assert document["info"]["title"] == "verse"
    assert "example" in json.dumps(document["paths"]["/v1/learn"]) + json.dumps(
        document["components"]["schemas"]
    )
    session.closing = True
    assert client.get("/readyz").status_code == 503
    assert learn(client, picture(), "red").status_code == 503
    session.closing = False


def test_events_reach_a_listener(monkeypatch) -> None:
    """The stream itself, without a server: a test client cannot read an endless answer."""
    import asyncio

    async def run() -> list[str]:
        events, heard = Events(), []
        events.open()
        with events.subscription("me") as waiting:
            stream = stream_events("event: status\ndata: {}\n\n", waiting)
            heard.append(await anext(stream))
            threading.Thread(target=events.send, args=("learned", {"seq": 1})).start()
            heard.append(await anext(stream))
            for i in range(400):
                events.send("status", {"i": i})
            await asyncio.sleep(0.05)
            heard.append(await anext(stream))
            events.close()
            heard += [text async for text in stream]
        assert events.listeners == 0
        return heard

    first, learned, oldest, *_, last = asyncio.run(run())
    assert first.startswith("retry: 1000\n\nevent: status")
    assert learned == 'event: learned\ndata: {"seq": 1}\n\n'
    assert '"i": 144' in oldest and '"i": 399' in last  # who is slow loses the oldest


def test_the_page_is_served_with_a_strict_policy(serve) -> None:
    client = serve()
    if not module.PAGE.is_dir():
        pytest.skip("no page")
    page = client.get("/")
    assert page.status_code == 200 and "<html" in page.text
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert "<script>" not in page.text and "style=" not in page.text and "http://" not in page.text


def test_a_full_disk_is_507(serve, picture, session, monkeypatch) -> None:
    from verse.durable import JournalFull

    client = serve()

    def full() -> None:
        raise JournalFull("cannot write the journal (disk full)")

    with monkeypatch.context() as patch:
        patch.setattr(session.classifier.journal, "flush", full)
        assert learn(client, picture(), "red").status_code == 507
    assert learn(client, picture(), "red").status_code == 200
    assert session.classifier.samples == 1


def test_answers_do_not_wait_for_learning(serve, picture, session, monkeypatch) -> None:
    client = serve()
    learn(client, picture("red"), "red")
    let_go = threading.Event()
    step = session.classifier.learn_lessons

    def slow(lessons, ask):
        let_go.wait(120)
        return step(lessons, ask=ask)

    monkeypatch.setattr(session.classifier, "learn_lessons", slow)
    teaching = threading.Thread(target=learn, args=(client, picture("blue"), "blue"))
    teaching.start()
    time.sleep(0.1)
    answer = ask(client, picture("red")).json()
    assert answer["step"] == 1 and answer["label"] == "red"
    let_go.set()
    teaching.join()
    assert ask(client, picture("red")).json()["step"] == 2


def test_a_full_queue_refuses_and_loses_nothing(serve, picture, session, monkeypatch) -> None:
    client = serve()
    let_go = threading.Event()
    step = session.classifier.learn_lessons

    def slow(lessons, ask):
        let_go.wait(120)
        return step(lessons, ask=ask)

    monkeypatch.setattr(session.classifier, "learn_lessons", slow)
    codes: list[int] = []

    def send(t: int) -> None:
        codes.append(learn(client, picture("red", t), "red").status_code)

    senders = [threading.Thread(target=send, args=(t,)) for t in range(40)]
    for sender in senders:
        sender.start()
    deadline = time.monotonic() + 90
    while codes.count(429) < 10 and time.monotonic() < deadline:
        time.sleep(0.02)
    refused = learn(client, picture("red"), "red")
    assert refused.status_code == 429 and int(refused.headers["retry-after"]) >= 1
    let_go.set()
    for sender in senders:
        sender.join()
    assert set(codes) == {200, 429}
    assert session.classifier.samples == codes.count(200) == session.view.samples
