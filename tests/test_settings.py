"""Hyper-parameters as JSON schema: what the schema allows, the constructor takes."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Iterator
from typing import Any, Literal

import jsonschema
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from verse import backbones, learners, memory
from verse.cli import main
from verse.settings import Property, json_schema, keeps, kinds, properties, rule
from verse.types import BadSetting

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
    assert all(value.get("description") for value in document["properties"].values())


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


def outside(allowed: Property) -> Iterator[object]:
    """Values of the right type that the schema forbids."""
    step = 1 if "integer" in kinds(allowed) else 1e-6
    yield from (allowed[key] for key in ("exclusiveMinimum", "exclusiveMaximum") if key in allowed)
    yield from (allowed[key] - step for key in ("minimum",) if key in allowed)
    yield from (allowed[key] + step for key in ("maximum",) if key in allowed)
    if "number" in kinds(allowed) and rule(allowed):
        yield float("nan")
    if "enum" in allowed or "pattern" in allowed:
        yield "nonsense"


@pytest.mark.parametrize("name", NAMES)
def test_what_the_schema_forbids_the_constructor_refuses(name: str) -> None:
    for key, allowed in learners.schema(name)["properties"].items():
        for value in outside(allowed):
            if value == value:  # JSON has no NaN
                with pytest.raises(jsonschema.ValidationError):
                    jsonschema.validate({key: value}, learners.schema(name))
            assert not keeps(allowed, value)
            with pytest.raises(BadSetting, match=key):
                learners.build(
                    name, backbones.identity(3).F, memory.get("class-balanced")(8), **{key: value}
                )


@pytest.mark.parametrize("name", NAMES)
def test_what_has_the_wrong_type_the_constructor_refuses(name: str) -> None:
    """At construction, with the setting's name; not in the middle of a stream."""
    for key, allowed in learners.schema(name)["properties"].items():
        for value in ("nonsense", None, True, [1], 1.5, float("inf"), float("nan")):
            finite = not isinstance(value, float) or math.isfinite(value)  # JSON has no others
            if finite and jsonschema.Draft202012Validator(allowed).is_valid(value):
                continue
            with pytest.raises(BadSetting, match=key):
                learners.build(
                    name, backbones.identity(3).F, memory.get("class-balanced")(8), **{key: value}
                )


@pytest.mark.parametrize("value", [2**63, -(10**30), 10**400])
@pytest.mark.parametrize("key", ["lr", "C", "seed"])
def test_numbers_that_nothing_can_count_to_are_refused(key: str, value: int) -> None:
    with pytest.raises(BadSetting, match=key):
        learners.build(
            "verse", backbones.identity(3).F, memory.get("class-balanced")(8), **{key: value}
        )


@given(
    st.builds(
        lambda low, high, shut: {
            "type": "number",
            "minimum" if shut[0] else "exclusiveMinimum": low,
            "maximum" if shut[1] else "exclusiveMaximum": high,
        },
        st.integers(-2, 0),
        st.integers(0, 2),
        st.tuples(st.booleans(), st.booleans()),
    ),
    st.one_of(st.integers(-3, 3), st.floats(-3, 3)),
)
def test_bounds_mean_what_json_schema_means(allowed: Property, value: float) -> None:
    assert keeps(allowed, value) == jsonschema.Draft202012Validator(allowed).is_valid(value)


def test_what_a_signature_does_not_say_is_inherited() -> None:
    assert learners.schema("fifo")["properties"]["C"]["description"]
    assert learners.schema("verse-no-virtual")["properties"]["gamma"]["maximum"] == 1
    assert learners.schema("mas")["properties"]["penalty"]["enum"] == ["implicit", "explicit"]
    assert learners.schema("ncm")["properties"]["seed"]["minimum"] == 0

    class Mine(learners.VERSE):
        """With a setting of its own."""

        def __init__(self, F: Any, memory: Any, *, beta: float = 0.1, more=2, seed: int = 0):  # type: ignore[no-untyped-def]
            super().__init__(F, memory, beta=beta, seed=seed)
            self.more = more

    known = properties(Mine)
    assert known["beta"]["exclusiveMinimum"] == 0 and known["beta"]["default"] == 0.1
    assert known["more"] == {"type": "integer", "default": 2}, "as its default is"
    Mine(backbones.identity(3).F, memory.get("class-balanced")(8))


def test_annotations_that_cannot_be_resolved_are_anything() -> None:
    def make(*, how: "Unknown" = 3, other: "int | None" = None) -> None: ...  # type: ignore[name-defined]  # noqa: F821, UP037

    assert properties(make) == {
        "how": {"type": "integer", "default": 3},
        "other": {"default": None},
    }


def test_other_annotations() -> None:
    def make(
        *, how: Literal["a", "b"], many: list[int] | None = None, some: Any = inspect
    ) -> None: ...

    document = json_schema("make", make)
    assert document["properties"]["how"] == {"enum": ["a", "b"]}
    assert document["required"] == ["how"]
    assert document["properties"]["many"]["type"] == ["array", "null"]
    assert list(document["properties"]["some"]) == ["default"]


def test_the_command_line_lists_it() -> None:
    result = CliRunner().invoke(main, ["list", "learners", "--json"], catch_exceptions=False)
    rows = {row["name"]: row for row in json.loads(result.stdout)}
    assert rows["verse"]["settings"] == json.loads(json.dumps(learners.schema("verse")))
    assert all(rows[name]["settings"]["type"] == "object" for name in NAMES)


def test_help_of_a_learner_lists_its_settings() -> None:
    for name in NAMES:
        factory = learners.get(name)
        if isinstance(factory, type) and "__init__" in vars(factory):
            section = inspect.getdoc(factory).partition("Parameters\n----------\n")[2]
            listed = [line for line in section.splitlines() if line and not line.startswith(" ")]
            stated = {word for line in listed for word in line.split(", ")}
            assert set(learners.settings(name)) <= stated, name
