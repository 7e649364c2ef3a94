"""Images and labels in, predictions out; bad input leaves everything as it was."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch
from PIL import Image

from verse import StreamClassifier, backbones, checkpoint, learners
from verse.saved import NotExact
from verse.types import BadImage, BadLabel, BadSetting, BadState, Refused

COLOURS = {"red": (200, 30, 30), "green": (30, 200, 30), "blue": (30, 30, 200)}


def picture(label: str, seed: int = 0) -> np.ndarray:
    """A noisy square of one colour."""
    noise = np.random.default_rng(seed).integers(-25, 25, (40, 48, 3))
    return np.clip(np.array(COLOURS[label]) + noise, 0, 255).astype(np.uint8)


def vectors(**options) -> StreamClassifier:
    return StreamClassifier(backbone=backbones.identity((6,)), **options)


def state_of(classifier: StreamClassifier) -> dict[str, torch.Tensor]:
    return {k: v.clone() for k, v in classifier.learner.state().items()}


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[k], b[k]) for k in a)


@pytest.fixture(scope="module")
def taught() -> StreamClassifier:
    """The default classifier after 45 pictures."""
    classifier = StreamClassifier(seed=0)
    for t in range(45):
        label = list(COLOURS)[t % 3]
        classifier.learn_one(picture(label, t), label)
    return classifier


def test_default_learns_colours(taught) -> None:
    assert taught.classes == ["red", "green", "blue"] and taught.samples == 45
    assert [taught.predict_one(picture(c, 99)) for c in COLOURS] == list(COLOURS)
    many = taught.predict_many([picture(c, 98) for c in COLOURS])
    assert many == list(COLOURS)
    p = taught.predict_proba_one(picture("red", 7))
    assert set(p) == set(COLOURS) and sum(p.values()) == pytest.approx(1, abs=1e-5)
    assert taught.predict(picture("red")).step == 45
    assert taught.memory_counts() == {"red": 15, "green": 15, "blue": 15}


def test_every_kind_of_image_gives_the_same_answer(taught, tmp_path) -> None:
    array = picture("green", 3)
    path = tmp_path / "x.png"
    Image.fromarray(array).save(path)
    expected = taught.predict_proba_one(array)
    kinds = [
        path,
        str(path),
        Image.fromarray(array),
        torch.from_numpy(array).permute(2, 0, 1),
        array.astype(np.float32) / 255,
        path.read_bytes(),
    ]
    for image in kinds:
        assert taught.predict_proba_one(image) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(
    "image",
    [
        "no-such-file.png",
        b"not an image",
        np.zeros((0, 4, 3), np.uint8),
        np.full((4, 4, 3), np.nan, np.float32),
        np.zeros((2, 2, 2, 2), np.uint8),
        np.zeros((4, 4, 7), np.uint8),
        None,
    ],
    ids=["missing", "bytes", "empty", "nan", "rank", "channels", "none"],
)
def test_bad_image_changes_nothing(taught, image) -> None:
    before = state_of(taught)
    with pytest.raises(BadImage):
        taught.learn_one(image, "yellow")
    assert same(before, state_of(taught)) and "yellow" not in taught.classes


@pytest.mark.parametrize("label", ["", "  ", None, True, 1.5, ["a"], {"a"}])
def test_bad_label_changes_nothing(label) -> None:
    classifier = vectors()
    with pytest.raises(BadLabel):
        classifier.learn_one(np.ones(6), label)
    assert classifier.samples == 0 and classifier.classes == []


def test_refused_sample_takes_its_new_class_back(monkeypatch) -> None:
    classifier = vectors()
    classifier.learn_one(np.ones(6), "a")
    before = state_of(classifier)

    def refuse(values):
        raise Refused("made to refuse")

    monkeypatch.setattr(classifier.learner, "require_finite", refuse)
    with pytest.raises(Refused):
        classifier.learn_one(np.ones(6), "b")
    assert classifier.classes == ["a"] and same(before, state_of(classifier))


def test_labels_keep_type_and_order() -> None:
    classifier = vectors()
    for label in [7, "7", "b", "a"]:
        classifier.learn_one(np.ones(6), label)
    assert classifier.classes == [7, "7", "b", "a"]


def test_numpys_labels_are_pythons(tmp_path) -> None:
    """Labels often come out of an array; they are saved as plain ones."""
    classifier = vectors()
    for label in np.array([7, 8]), np.array(["a"]):
        classifier.learn_many([np.ones(6)] * len(label), label)
    classifier.learn_one(np.ones(6), 7)
    assert classifier.classes == [7, 8, "a"]
    assert [type(label) for label in classifier.classes] == [int, int, str]
    classifier.save(tmp_path / "c.verse")
    classifier.forget(np.int64(8))
    assert classifier.classes == [7, "a"]
    with pytest.raises(BadLabel, match="not list"):
        classifier.forget(["a"])


def test_before_learning() -> None:
    classifier = vectors()
    assert classifier.predict_one(np.ones(6)) is None
    assert classifier.predict_proba_one(np.ones(6)) == {}
    assert classifier.predict_many([]) == []


def test_forget_rename_merge() -> None:
    classifier = vectors(seed=1, per_class=20)
    for t in range(60):
        label = "abc"[t % 3]
        classifier.learn_one(np.eye(6)[t % 3] * 4, label)
    classifier.rename("a", "A")
    assert classifier.classes == ["A", "b", "c"]
    assert classifier.predict_one(np.eye(6)[0] * 4) == "A"
    assert classifier.merge("b", "c") == 20
    assert classifier.memory_counts() == {"A": 20, "c": 20}  # one class less, its budget gone
    assert classifier.predict_one(np.eye(6)[1] * 4) in ("A", "c")
    assert classifier.forget("A") == 20
    assert classifier.classes == ["c"] and "A" not in classifier.predict_proba_one(np.ones(6))
    classifier.learn_one(np.eye(6)[0] * 4, "A")  # comes back as a new class
    assert classifier.classes == ["c", "A"]
    for call in (lambda: classifier.forget("zebra"), lambda: classifier.rename("c", "A")):
        with pytest.raises(BadLabel):
            call()


@pytest.mark.parametrize(
    "budget",
    [{"per_class": 3}, {"capacity": "3 per class"}, {"capacity": 12}, {"capacity": "400B"}],
)
def test_memory_is_bounded(budget: dict, tmp_path) -> None:
    classifier = vectors(**budget)
    for t in range(50):
        classifier.learn_one(np.random.default_rng(t).normal(size=6), f"class {t % 4}")
    assert sum(classifier.memory_counts().values()) == 12  # of 32 bytes each
    classifier.save(tmp_path / "saved")
    assert StreamClassifier.load(tmp_path / "saved", backbone=backbones.identity(6)).spec() == (
        classifier.spec()
    )


def test_the_default_budget_is_in_bytes() -> None:
    spec = vectors().spec()
    assert (spec["capacity"], spec["per_class"], spec["byte_limit"]) == (None, None, 32_000_000)


def test_save_load_continue_is_exact(tmp_path) -> None:
    """In a fresh process, with growing heads: no bit differs."""
    stops = (0, 1, 17, 29)
    rng = np.random.default_rng(0)
    stream = [(rng.normal(size=6), f"c{t // 2}") for t in range(40)]
    whole = vectors(seed=5)
    for t, (z, label) in enumerate(stream):
        if t in stops:
            whole.save(tmp_path / f"{t}.verse")
        whole.learn_one(z, label)
    code = f"""
import numpy as np, torch
torch.set_num_threads({torch.get_num_threads()})
from verse import StreamClassifier, backbones
rng = np.random.default_rng(0)
stream = [(rng.normal(size=6), f"c{{t // 2}}") for t in range(40)]
for stop in {stops}:
    c = StreamClassifier.load(f"{{stop}}.verse", backbone=backbones.identity((6,)))
    for z, label in stream[stop:]:
        c.learn_one(z, label)
    c.save(f"{{stop}}.verse")
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, cwd=tmp_path)
    for stop in stops:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            file = tmp_path / f"{stop}.verse"
            resumed = StreamClassifier.load(file, backbone=backbones.identity((6,)))
        assert same(state_of(whole), state_of(resumed))
        assert whole.classes == resumed.classes and whole.samples == resumed.samples


def test_a_load_by_name_normalises_as_before(tmp_path) -> None:
    """Running statistics that move are state: rebuilt with frozen ones they would be lost."""
    built = backbones.build("efficientnet-lite0", batchnorm="train")
    classifier = StreamClassifier(backbone=built)
    for t, label in enumerate(COLOURS):
        classifier.learn_one(picture(label, t), label)
    classifier.save(tmp_path / "c.verse")
    loaded = StreamClassifier.load(tmp_path / "c.verse")
    assert loaded.backbone.F.batchnorm == "train"
    assert same(state_of(loaded), state_of(classifier))


def test_other_circumstances_warn(tmp_path) -> None:
    file = tmp_path / "c.verse"
    vectors().save(file)
    threads = torch.get_num_threads()
    torch.set_num_threads(threads + 1)
    try:
        with pytest.warns(NotExact, match="threads"):
            StreamClassifier.load(file, backbone=backbones.identity((6,)))
    finally:
        torch.set_num_threads(threads)


def test_another_normalisation_warns(tmp_path) -> None:
    file = tmp_path / "c.verse"
    vectors().save(file)
    with pytest.warns(NotExact, match="batchnorm of F was frozen, is train"):
        StreamClassifier.load(file, backbone=backbones.identity((6,), batchnorm="train"))


@pytest.mark.parametrize(
    ("learner", "setting", "function"),
    [
        ("verse-joint", "lam", learners.VERSEJoint.__init__),
        ("gdumb", "passes", learners.GDumb.__init__),
        ("verse-no-virtual", "beta", learners.get("verse-no-virtual").make),
        ("tinyer-c48", "lr", learners.get("tinyer-c48").make),
        ("coreset-vcl", "epochs", learners.get("coreset-vcl").make),
    ],
)
def test_a_default_that_changes_leaves_what_was_saved(
    tmp_path, monkeypatch, learner, setting, function
) -> None:
    file = tmp_path / "c.verse"
    before = vectors(learner=learner, settings={"clip": 3.0})
    before.learn_one(np.ones(6), "a")
    before.save(file)
    # a version that has another default: signatures are read anew
    monkeypatch.setattr(learners, "_keywords", learners._keywords.__wrapped__)
    monkeypatch.setitem(function.__kwdefaults__, setting, 7)
    for _ in range(2):  # also when it is saved again
        loaded = StreamClassifier.load(file, backbone=backbones.identity((6,)))
        assert loaded.learner.settings() == before.learner.settings()
        assert same(state_of(before), state_of(loaded))
        loaded.save(file)
    assert vectors(learner=learner).learner.settings() != before.learner.settings()


def test_a_file_with_the_given_settings_only_is_read(tmp_path) -> None:
    """Files of before held no defaults."""
    file = tmp_path / "c.verse"
    before = vectors(settings={"lam": 0.2})
    checkpoint.write(file, before.learner.state(), before.spec() | {"settings": {"lam": 0.2}})
    loaded = StreamClassifier.load(file, backbone=backbones.identity((6,)))
    assert loaded.learner.settings() == before.learner.settings()


def test_another_backbone_is_refused(tmp_path) -> None:
    file = tmp_path / "c.verse"
    vectors().save(file)
    with pytest.raises(BadState, match="another backbone"):
        StreamClassifier.load(file, backbone=backbones.identity((7,)))


def test_a_backbone_of_your_own_is_asked_for(tmp_path) -> None:
    file = tmp_path / "c.verse"
    vectors().save(file)
    with pytest.raises(BadState, match=r"of your own \(identity at fc\): hand it over"):
        StreamClassifier.load(file)


@pytest.mark.parametrize("seed", [-1, 1.5, "one", None])
def test_a_seed_is_a_whole_number(seed) -> None:
    with pytest.raises(BadSetting, match="seed"):
        vectors(seed=seed)


def test_unknown_options_name_the_valid_ones() -> None:
    with pytest.raises(BadSetting, match="did you mean 'verse'"):
        vectors(learner="vers")
    with pytest.raises(BadSetting, match="alpha"):
        vectors(settings={"alhpa": 1})
    with pytest.raises(BadSetting, match="class-balanced"):
        vectors(memory="class-balance")


def test_follow_answers_like_the_original() -> None:
    writer, reader = vectors(), vectors()
    for t in range(40):
        writer.learn_one(np.eye(6)[t % 6], t % 20)
        if t in (3, 30):
            reader.learner.follow(writer.learner)
            Z = torch.eye(6)
            expected = writer.learner.predict_proba_many(Z)
            assert torch.equal(reader.learner.predict_proba_many(Z), expected)


def test_overlap_changes_nothing_but_time() -> None:
    """The same bits with G one image ahead; a bad image fails at its turn."""
    Z = np.random.default_rng(0).normal(size=(30, 4)).astype(np.float32)
    labels = [t % 3 for t in range(30)]
    states = []
    for overlap in (False, True):
        classifier = StreamClassifier(backbone=backbones.identity(4), seed=1)
        assert classifier.learn_many(list(Z), labels, overlap=overlap) == 30
        states.append({k: v.clone() for k, v in classifier.learner.state().items()})
    assert all(torch.equal(states[0][k], states[1][k]) for k in states[0])

    classifier = StreamClassifier(backbone=backbones.identity(4), seed=1)
    with pytest.raises(BadImage):
        classifier.learn_many([Z[0], Z[1], "no feature", Z[2]], [0, 1, 0, 1], overlap=True)
    assert classifier.samples == 2


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_feature_without_an_answer(value) -> None:
    classifier = vectors()
    classifier.learn_one(np.ones(6), "a")
    with pytest.raises(BadImage, match="NaN or infinite"):
        classifier.predict_feature(torch.tensor([1.0, 2, 3, 4, 5, value]))
    assert classifier.predict_feature(torch.full((6,), 3e38)).label == "a"  # only its sum is not


def test_saving_into_a_folder_that_is_not_there(tmp_path) -> None:
    with pytest.raises(BadSetting, match=r"there is no folder .*missing: make it first"):
        vectors().save(tmp_path / "missing" / "c.verse")
    with pytest.raises(BadSetting, match="cannot write"):
        vectors().save(tmp_path)  # a folder


def test_what_is_printed_says_what_it_is() -> None:
    classifier = vectors(learner="derpp", capacity=5)
    for t in range(8):
        classifier.learn_one(np.eye(6)[t % 3], "abc"[t % 3])
    assert repr(classifier) == (
        "<StreamClassifier derpp on identity at fc: 3 classes, 8 samples, 5 in memory>"
    )
    assert repr(classifier.backbone).startswith("<Backbone identity at fc: features 6, key ")
    assert repr(classifier.learner.memory) == "<ClassBalanced: 5 of at most 5 samples, float32>"
    assert repr(classifier.learner).startswith("<DER: 3 classes, 8 samples, <Class")
    answer = repr(classifier.predict(np.eye(6)[0]))
    assert answer.startswith("Prediction('a', confidence=0.") and answer.endswith("3 classes)")


def test_a_file_does_not_choose_code(tmp_path, monkeypatch) -> None:
    """A learner of your own comes from the person at the keyboard alone."""
    (tmp_path / "planted.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(learners, "_trusted", {})  # as in a process where nobody named one
    file = tmp_path / "c.verse"
    before = vectors(learner="verse")
    before.learn_one(np.ones(6), "a")
    for name in ("planted.Learner", "verse.learners.VERSE"):
        checkpoint.write(file, before.learner.state(), before.spec() | {"learner": name})
        with pytest.raises(BadState, match="name it again"):
            StreamClassifier.load(file, backbone=backbones.identity((6,)))
    named = StreamClassifier.load(
        file, backbone=backbones.identity((6,)), learner="verse.learners.VERSE"
    )
    assert same(state_of(named), state_of(before))


@pytest.mark.parametrize(
    "change", [{"known": 3}, {"known": [["a"]]}, {"known": {"a": "b"}}, {"settings": "x"}], ids=str
)
def test_a_damaged_document_is_told(tmp_path, change) -> None:
    file = tmp_path / "c.verse"
    before = vectors()
    checkpoint.write(file, before.learner.state(), before.spec() | change)
    with pytest.raises(BadState, match="damaged"):
        StreamClassifier.load(file, backbone=backbones.identity((6,)))
