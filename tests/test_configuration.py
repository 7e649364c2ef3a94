"""The record that says what a classifier is made of."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import FrozenInstanceError, fields
from pathlib import Path
from typing import get_type_hints

import numpy as np
import pytest

import verse
from verse import StreamClassifier, backbones
from verse.configuration import DEFAULT_BACKBONE, DEFAULT_LEARNER, Configuration, Options
from verse.types import BadSetting, BadState


def test_options_are_the_fields() -> None:
    names = {f.name for f in fields(Configuration)}
    assert set(get_type_hints(Options)) == names - {"backbone"}


def test_it_is_frozen_and_keeps_its_own_settings() -> None:
    settings = {"lr": 0.1}
    configuration = Configuration(settings=settings)
    settings["lr"] = 0.2
    assert configuration.settings == {"lr": 0.1}
    with pytest.raises(FrozenInstanceError):
        configuration.seed = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": -1}, "seed must be a whole number of at least 0"),
        ({"seed": True}, "seed"),
        ({"per_class": 0}, "per_class must be a whole number of at least 1"),
        ({"threads": 1.5}, "threads"),
        ({"capacity": 0}, "capacity"),
        ({"learner": ""}, "learner must be a name"),
        ({"backbone": 3}, "backbone must be a name or a Backbone"),
        ({"at": 4}, "name of a layer"),
        ({"weights": 4}, "weights must be a path"),
        ({"settings": [1]}, "settings must be a table"),
        ({"device": "gpu"}, "use one of"),
        ({"lerner": "verse"}, r"did you mean 'learner'\?"),
        ({"lr": 0.1}, r"settings=\{'lr': …\}; the options are backbone, at, weights, learner"),
    ],
)
def test_what_makes_no_sense_is_refused(options, message) -> None:
    with pytest.raises(BadSetting, match=message):
        Configuration().with_options(options)


def test_numpys_numbers_and_paths_are_plain() -> None:
    made = Configuration(seed=np.int64(3), per_class=np.int32(5), weights=Path("w.pth"))  # type: ignore[arg-type]
    assert json.loads(json.dumps(made.document()))["weights"] == "w.pth"
    assert made.seed == 3 and type(made.seed) is int and type(made.per_class) is int


def test_a_document_gives_the_record_again() -> None:
    made = Configuration(learner="derpp", settings={"lr": 0.02}, capacity=7, at="fc", seed=2)
    assert Configuration.from_document(json.loads(json.dumps(made.document()))) == made


@pytest.mark.parametrize(
    "change",
    [{"seed": "x"}, {"settings": 3}, {"learner": None}, {"backbone": []}, {"capacity": -2}],
    ids=str,
)
def test_a_damaged_document_is_a_damaged_state(change) -> None:
    with pytest.raises(BadState, match="damaged"):
        Configuration.from_document(Configuration().document() | change)
    whole = Configuration().document()
    del whole[next(iter(change))]
    with pytest.raises(BadState, match="lacks"):
        Configuration.from_document(whole)


def test_what_differs_is_said_in_one_sentence() -> None:
    mine = Configuration(learner="derpp", settings={"lr": 0.02, "C": 16}, at="fc", threads=2)
    assert mine.differs_from({}) is None
    assert mine.differs_from(mine) is None
    assert mine.differs_from({"threads": 1, "weights": "elsewhere", "at": None}) is None
    assert mine.differs_from({"settings": {"lr": 0.02}}) is None
    assert mine.differs_from({"seed": 1}) == "it was begun with seed=0, not 1"
    assert "learner='derpp', not 'verse'" in str(mine.differs_from(Configuration(learner="verse")))


def test_a_classifier_takes_the_record_or_its_fields() -> None:
    record = Configuration(learner="derpp", settings={"lr": 0.02}, seed=3)
    one = StreamClassifier(record, backbone=backbones.identity((4,)))
    two = StreamClassifier(
        backbone=backbones.identity((4,)), learner="derpp", settings={"lr": 0.02}, seed=3
    )
    assert one.configuration == two.configuration
    assert one.configuration.settings["C"] == one.learner.settings()["C"]  # all in force
    three = StreamClassifier(record, backbone=backbones.identity((4,)), seed=4)
    assert (three.configuration.seed, three.learner_name) == (4, "derpp")
    assert one.twin().configuration == one.configuration
    with pytest.raises(BadSetting, match="goes into settings="):
        StreamClassifier(backbone=backbones.identity((4,)), lr=0.1)  # type: ignore[call-arg]
    with pytest.raises(BadSetting, match="give a Configuration"):
        StreamClassifier("resnet18")  # type: ignore[arg-type]
    for option in ({"at": "fc"}, {"weights": "random"}, {"precision": "auto"}):
        with pytest.raises(BadSetting, match="yours is built already"):
            StreamClassifier(backbone=backbones.identity((4,)), **option)


def test_a_directory_takes_the_record(tmp_path) -> None:
    record = Configuration(learner="derpp", seed=3, capacity="20 per class")
    with verse.open(tmp_path, record, backbone=backbones.identity((4,))) as classifier:
        assert classifier.configuration.per_class == 20
        classifier.learn_one(np.ones(4), "mug")
    with verse.open(tmp_path, record, backbone=backbones.identity((4,))) as classifier:
        assert classifier.samples == 1 and classifier.learner_name == "derpp"
    with pytest.raises(BadSetting, match="it was begun with seed=3, not 0"):
        verse.open(
            tmp_path,
            Configuration(learner="derpp", capacity="20 per class"),
            backbone=backbones.identity((4,)),
        )


def test_the_defaults_are_everybodys() -> None:
    pytest.importorskip("river")
    pytest.importorskip("sklearn")
    from verse.compat.river import RiverClassifier
    from verse.compat.sklearn import SklearnClassifier
    from verse.experiments import Run

    assert RiverClassifier().learner == SklearnClassifier().learner == DEFAULT_LEARNER
    run = Run("tabletop")
    assert (run.learner, run.backbone) == (DEFAULT_LEARNER, DEFAULT_BACKBONE)


def test_it_needs_no_torch() -> None:
    code = "import sys, verse; verse.Configuration(); sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
