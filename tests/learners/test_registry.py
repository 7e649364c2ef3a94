"""A name that may come from a file imports nothing; what a person types may."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from verse import learners
from verse.build import read_configuration
from verse.classifier import StreamClassifier
from verse.configuration import Configuration
from verse.types import BadSetting, BadState

MODULE = "from verse.learners import TinyER\n\n\nclass Mine(TinyER):\n    name = 'mine'\n"


@pytest.fixture
def name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The dotted path of a learner that nobody has imported yet."""
    module = f"module_of_{tmp_path.name}"
    (tmp_path / f"{module}.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    return f"{module}.Mine"


def imported(name: str) -> bool:
    return name.rpartition(".")[0] in sys.modules


def test_looking_up_a_name_imports_nothing(name: str) -> None:
    for look in (learners.get, learners.settings, learners.schema, learners.defaults):
        with pytest.raises(BadSetting, match="trust"):
            look(name)
    with pytest.raises(BadState, match="trust"):
        read_configuration(Configuration(learner=name).document())
    assert not imported(name)


def test_what_a_person_names_is_known_from_then_on(name: str) -> None:
    assert learners.trust(name).__name__ == "Mine"
    assert learners.get(name) is learners.trust(name) and imported(name)
    assert "lr" in learners.settings(name)
    assert name not in learners.names()
    read_configuration(Configuration(learner=name).document())


def test_a_person_names_it_where_a_classifier_is_made_or_loaded(name: str) -> None:
    from verse import backbones

    classifier = StreamClassifier(backbone=backbones.identity(3), learner=name)
    assert type(classifier.learner).__name__ == "Mine"
    read_configuration(classifier.spec(), learner=name)


@pytest.mark.parametrize("bad", ["no.such.module.Class", "os.NoClass", "a..b", ".", "verse"])
def test_what_cannot_be_imported_is_one_sentence(bad: str) -> None:
    if bad == "verse":
        assert learners.trust(bad).name == "verse"
        return
    with pytest.raises(BadSetting, match="cannot import the learner"):
        learners.trust(bad)
