"""What the service sends and takes, with examples: the OpenAPI document is made from these."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from verse.serve.labels import escape_label

Shown = BeforeValidator(lambda label: None if label is None else escape_label(label))
Name = Annotated[
    str | int, Shown, Field(description="A class, as it was taught.", examples=["mug"])
]
NoName = Annotated[str | int | None, Shown]


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Guess(_Document):
    """The answer before learning; null before anything was learned."""

    label: NoName = Field(examples=["cup"])
    correct: bool | None = Field(examples=[False])


class LearnedDocument(_Document):
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


class AnswerDocument(_Document):
    """What an image shows."""

    label: NoName = Field(description="null: nothing taught fits", examples=["mug"])
    nearest: NoName = Field(description="The likeliest class, known or not.", examples=["mug"])
    known: bool = Field(description="Whether anything taught fits.", examples=[True])
    novelty: float | None = Field(
        description="0 like the frames taught, above 1 unknown; null before anything was learned.",
        examples=[0.4],
    )
    confidence: float = Field(description="Probability of the nearest.", examples=[0.93])
    probabilities: list[Share]
    step: int = Field(description="Samples learned when this was answered.", examples=[17])
    frame: str = Field(
        description="Its id: /v1/learn takes it instead of the image, for a minute.",
        examples=["kQ3vZ1x0b7fT9a2c"],
    )


class ClassSummary(_Document):
    """One class."""

    label: Name
    taught: int = Field(description="Samples taught.", examples=[9])
    remembered: int = Field(description="Samples in memory now.", examples=[9])
    thumbnails: list[int] = Field(description="Numbers with a thumbnail.", examples=[[15, 17]])


class ClassReportDocument(_Document):
    """What a class lacks."""

    label: Name
    samples: int = Field(description="Samples looked at.", examples=[9])
    accuracy: float | None = Field(
        description="Share recognised with what was taught together left out.", examples=[0.97]
    )
    looks_like: NoName = Field(examples=["cup"])
    advice: str = Field(examples=["show it from other sides"])


class ConfusionDocument(_Document):
    """A class that is taken for another one."""

    label: Name
    taken_for: Name
    share: float = Field(examples=[0.12])


class SuspectDocument(_Document):
    """A sample that looks more like another class."""

    label: Name
    looks_like: Name
    score: float = Field(description="The higher, the more it contradicts.", examples=[0.8])
    seq: int | None = Field(description="For undo and its thumbnail.", examples=[17])


class ReportDocument(_Document):
    """Was it taught well? The worst suspects come first."""

    classes: list[ClassReportDocument]
    confused: list[ConfusionDocument]
    suspects: list[SuspectDocument]


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


class LastSample(_Document):
    """A sample; its label is null if it was taught elsewhere."""

    seq: int = Field(examples=[17])
    label: NoName = Field(examples=["mug"])


class Status(_Document):
    """The service at this moment."""

    samples: int = Field(examples=[17])
    classes: int = Field(examples=[2])
    queue: Queue
    memory: MemoryUse
    rates: Rates
    prequential: History
    last: LastSample | None = Field(description="The newest sample that can be undone.")
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


class Undo(_Document):
    """Which samples to take back: their numbers, or how many of the latest."""

    seqs: list[Annotated[int, Field(ge=1, le=2**53 - 1)]] | None = Field(
        None, min_length=1, max_length=1000, examples=[[16, 17]]
    )
    count: int | None = Field(None, ge=1, le=1000, examples=[None])

    @model_validator(mode="after")
    def _one_of_both(self) -> Undo:
        if (self.seqs is None) == (self.count is None):
            raise ValueError("give either seqs or count")
        return self


class UndoneSample(_Document):
    """A sample that was taken back."""

    seq: int = Field(examples=[17])
    label: Name


class UndoneSamples(_Document):
    """The samples are taken back, as if they had never come; the newest is first."""

    undone: list[UndoneSample]
    samples: int = Field(examples=[15])


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

    into: str = Field(min_length=1, max_length=1000, examples=["cup"])


class Merged(_Document):
    """Two classes are one."""

    into: str = Field(examples=["cup"])
    moved: int = Field(description="Samples in memory that changed their class.", examples=[9])


class Health(_Document):
    """Alive, and perhaps ready."""

    status: str = Field(examples=["ok"])


class Problem(_Document):
    """What is wrong and what to do."""

    detail: str = Field(examples=["mug.txt is not a supported image: use JPEG, PNG, WEBP"])
