"""What the service sends and takes, with examples: the OpenAPI document is made from these."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

Name = Annotated[str | int, Field(description="A class, as it was taught.", examples=["mug"])]


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Guess(_Document):
    """The answer before learning; null before anything was learned."""

    label: str | int | None = Field(examples=["cup"])
    correct: bool | None = Field(examples=[False])


class Learned(_Document):
    """The sample is learned and safe on disk."""

    seq: int = Field(description="Its number; undo takes it.", examples=[17])
    label: Name
    samples: int = Field(description="Samples learned so far.", examples=[17])
    classes: int = Field(description="Classes known now.", examples=[2])
    prequential: Guess


class Share(_Document):
    """One class and its probability."""

    label: Name
    p: float = Field(examples=[0.93])


class Answer(_Document):
    """What an image shows."""

    label: str | int | None = Field(
        description="null before anything was learned", examples=["mug"]
    )
    confidence: float = Field(examples=[0.93])
    probabilities: list[Share]
    step: int = Field(description="Samples learned when this was answered.", examples=[17])


class ClassSummary(_Document):
    """One class."""

    label: Name
    taught: int = Field(description="Samples taught.", examples=[9])
    remembered: int = Field(description="Samples in memory now.", examples=[9])
    thumbnails: list[int] = Field(description="Numbers with a thumbnail.", examples=[[15, 17]])


class Queue(_Document):
    """Lessons that wait."""

    length: int = Field(examples=[0])
    limit: int = Field(examples=[64])


class MemoryUse(_Document):
    """What the learner remembers."""

    samples: int = Field(examples=[17])
    limit: int = Field(examples=[40])
    bytes: int = Field(examples=[1066376])


class Rates(_Document):
    """Over the last five seconds."""

    learn_per_s: float = Field(examples=[4.2])
    predict_per_s: float = Field(examples=[12.0])


class History(_Document):
    """How often the answer before learning was right, over the last 50 samples."""

    accuracy: float | None = Field(examples=[0.75])
    window: list[tuple[int, float]] = Field(
        description="[sample, accuracy] over time, thinned out", examples=[[[16, 0.7], [17, 0.75]]]
    )


class Needs(_Document):
    """For which requests a token is needed."""

    learn: bool = Field(examples=[False])
    predict: bool = Field(examples=[False])


class LearnerSettings(BaseModel):
    """The method that learns."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    name: str = Field(examples=["verse"])
    settings: dict[str, Any] = Field(examples=[{"beta": 0.01}])
    schema_: dict[str, Any] = Field(
        alias="schema", description="The settings as JSON schema.", examples=[{"type": "object"}]
    )


class Status(_Document):
    """The service at this moment."""

    samples: int = Field(examples=[17])
    classes: int = Field(examples=[2])
    queue: Queue
    memory: MemoryUse
    rates: Rates
    prequential: History
    step: int = Field(description="The step that answers come from.", examples=[17])
    learner: str = Field(examples=["verse"])
    backbone: str = Field(examples=["efficientnet-lite0"])
    version: str = Field(examples=["0.1.0"])
    auth: Needs


class Undone(_Document):
    """The sample is taken back, as if it had never come."""

    seq: int = Field(examples=[17])
    label: Name
    samples: int = Field(examples=[16])


class Forgotten(_Document):
    """The class is gone."""

    label: str = Field(examples=["mug"])
    removed: int = Field(description="Samples that left memory.", examples=[9])


class Rename(_Document):
    """The new label."""

    to: str = Field(min_length=1, max_length=100, examples=["coffee mug"])


class Renamed(_Document):
    """The class has another label."""

    label: str = Field(examples=["coffee mug"])


class Merge(_Document):
    """The class to become part of."""

    into: str = Field(min_length=1, max_length=100, examples=["cup"])


class Merged(_Document):
    """Two classes are one."""

    into: str = Field(examples=["cup"])
    moved: int = Field(description="Samples in memory that changed their class.", examples=[9])


class Health(_Document):
    """Alive, and perhaps ready."""

    status: str = Field(examples=["ok"])


class Problem(_Document):
    """What is wrong and what to do."""

    detail: str = Field(examples=["these bytes is not an image in a known format"])
