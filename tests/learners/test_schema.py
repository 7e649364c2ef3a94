"""Hyper-parameters as JSON schema: what the schema allows, the constructor takes."""

from __future__ import annotations

import inspect
import json
from typing import Any, Literal

import jsonschema
import pytest
from click.testing import CliRunner

from verse import backbones, learners, memory
from verse.cli import main
from verse.learners.json_schema import schema

NAMES = learners.names()


@pytest.mark.parametrize("name", NAMES)
def test_it_is_a_valid_schema_of_every_setting(name: str) -> None:
    document = json.loads(json.dumps(learners.schema(name)))
    jsonschema.Draft202012Validator.check_schema(document)
    assert list(document["properties"]) == list(learners.settings(name))
    assert document["title"] == name and document["description"]
    assert all(
        value.get("type") or value.get("anyOf") or value.get("enum")
        for value in document["properties"].values()
    ), "a setting has a type that JSON knows"


@pytest.mark.parametrize("name", NAMES)
def test_its_defaults_are_the_constructors_and_fit_it(name: str) -> None:
    document = learners.schema(name)
    defaults = {key: value["default"] for key, value in document["properties"].items()}
    jsonschema.validate(defaults, document)
    learner = learners.build(
        name, backbones.identity(3).F, memory.get("class-balanced")(8), **defaults
    )
    plain = learners.build(name, backbones.identity(3).F, memory.get("class-balanced")(8))
    assert learner.settings() == plain.settings()


def test_what_is_wrong_is_refused() -> None:
    document = learners.schema("verse")
    for wrong in ({"beta": "much"}, {"betta": 0.1}, {"C": 1.5}, {"seed": None}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, document)
    jsonschema.validate({"clip": None, "beta": 1}, document)


def test_other_annotations() -> None:
    def make(
        *, how: Literal["a", "b"], many: list[int] | None = None, some: Any = inspect
    ) -> None: ...

    document = schema("make", make)
    assert document["properties"]["how"] == {"enum": ["a", "b"]}
    assert document["required"] == ["how"]
    assert document["properties"]["many"]["type"] == ["array", "null"]
    assert list(document["properties"]["some"]) == ["default"]


def test_the_command_line_lists_it() -> None:
    result = CliRunner().invoke(main, ["list", "learners", "--json"], catch_exceptions=False)
    rows = {row["name"]: row for row in json.loads(result.stdout)}
    assert rows["verse"]["settings"] == json.loads(json.dumps(learners.schema("verse")))
    assert all(rows[name]["settings"]["type"] == "object" for name in NAMES)
