"""The service's requests and responses, with examples. The OpenAPI document is made from them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictInt, model_validator

from verse.serve.labels import escape_label

Shown = BeforeValidator(lambda label: None if label is None else escape_label(label))
Name = Annotated[str | int, Shown, Field(description="The label of a class.", examples=["mug"])]
NoName = Annotated[str | int | None, Shown]


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Guess(_Document):
    """The prediction for this sample before it was learned; null for the first sample."""

    label: NoName = Field(examples=["cup"])
    correct: bool | None = Field(examples=[False])


class LearnedDocument(_Document):
    """The sample was learned and saved to disk."""

    seq: int = Field(description="Number of the sample; use it to undo.", examples=[17])
    label: Name
    samples: int = Field(description="Samples learned so far.", examples=[17])
    classes: int = Field(description="Classes known now.", examples=[2])
    prequential: Guess


class Share(_Document):
    """One class and its probability."""

    label: Name
    p: float = Field(examples=[0.93])


class AnswerDocument(_Document):
    """The prediction for an image."""

    label: NoName = Field(description="The class; null if unknown.", examples=["mug"])
    nearest: NoName = Field(description="The most probable class, always.", examples=["mug"])
    known: bool = Field(description="Whether the image fits a class.", examples=[True])
    novelty: float | None = Field(
        description="Near 0: as usual; above 1: unknown. null before the first sample.",
        examples=[0.4],
    )
    confidence: float = Field(description="Probability of `nearest`.", examples=[0.93])
    probabilities: list[Share]
    step: int = Field(description="Samples learned before this prediction.", examples=[17])
    frame: str = Field(
        description="Id of the image; /v1/learn accepts it instead of the image for one minute.",
        examples=["kQ3vZ1x0b7fT9a2c"],
    )


class ClassSummary(_Document):
    """One class."""

    label: Name
    taught: int = Field(description="Samples taught.", examples=[9])
    remembered: int = Field(description="Samples in memory now.", examples=[9])
    thumbnails: list[int] = Field(
        description="Numbers of samples with a thumbnail.", examples=[[15, 17]]
    )


class ClassReportDocument(_Document):
    """How well a class was taught."""

    label: Name
    samples: int = Field(description="Samples checked.", examples=[9])
    accuracy: float | None = Field(
        description="Accuracy; each sample is predicted without those taught together with it.",
        examples=[0.97],
    )
    looks_like: NoName = Field(examples=["cup"])
    advice: str = Field(examples=["show it from other sides"])


class ConfusionDocument(_Document):
    """A class that is confused with another one."""

    label: Name
    taken_for: Name
    share: float = Field(examples=[0.12])


class SuspectDocument(_Document):
    """A sample that looks more like another class."""

    label: Name
    looks_like: Name
    score: float = Field(description="Higher: more suspicious.", examples=[0.8])
    seq: int | None = Field(
        description="Number of the sample, for undo and its thumbnail.", examples=[17]
    )


class ReportDocument(_Document):
    """How well the classes were taught. The most suspicious samples come first."""

    classes: list[ClassReportDocument]
    confused: list[ConfusionDocument]
    suspects: list[SuspectDocument]


class Queue(_Document):
    """Samples that wait to be learned."""

    length: int = Field(examples=[0])
    limit: int = Field(examples=[64])


class MemoryUse(_Document):
    """The samples in memory."""

    samples: int = Field(examples=[17])
    limit: int = Field(examples=[40])
    bytes: int = Field(examples=[1066376])


class Rates(_Document):
    """Rates over the last five seconds."""

    learn_per_s: float = Field(examples=[4.2])
    predict_per_s: float = Field(examples=[12.0])


class History(_Document):
    """Prequential accuracy: each sample is predicted before it is learned; the last 50 samples."""

    accuracy: float | None = Field(examples=[0.75])
    window: list[tuple[int, float]] = Field(
        description="[sample, accuracy] over time, subsampled.", examples=[[[16, 0.7], [17, 0.75]]]
    )


class Needs(_Document):
    """Which requests need a token."""

    learn: bool = Field(examples=[False])
    predict: bool = Field(examples=[False])


class LearnerSettings(BaseModel):
    """The learner and its settings."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    name: str = Field(examples=["verse"])
    settings: dict[str, Any] = Field(examples=[{"beta": 0.01}])
    schema_: dict[str, Any] = Field(
        alias="schema", description="The settings as JSON schema.", examples=[{"type": "object"}]
    )


class LastSample(_Document):
    """A sample; its label is null if it was taught by another program."""

    seq: int = Field(examples=[17])
    label: NoName = Field(examples=["mug"])


class Status(_Document):
    """The current state of the service."""

    samples: int = Field(examples=[17])
    classes: int = Field(examples=[2])
    queue: Queue
    memory: MemoryUse
    rates: Rates
    prequential: History
    last: LastSample | None = Field(description="The newest sample that can be undone.")
    step: int = Field(description="The step that predictions use.", examples=[17])
    learner: str = Field(examples=["verse"])
    backbone: str = Field(examples=["efficientnet-lite0"])
    version: str = Field(examples=["0.1.0"])
    auth: Needs


class Undone(_Document):
    """The sample was undone, as if it had never been taught."""

    seq: int = Field(examples=[17])
    label: Name
    samples: int = Field(examples=[16])


class Undo(_Document):
    """Which samples to undo: their numbers, or how many of the latest."""

    seqs: list[Annotated[int, Field(ge=1, le=2**53 - 1)]] | None = Field(
        None, min_length=1, max_length=1000, examples=[[16, 17]]
    )
    count: StrictInt | None = Field(None, ge=1, le=1000, examples=[None])

    @model_validator(mode="after")
    def _one_of_both(self) -> Undo:
        if (self.seqs is None) == (self.count is None):
            raise ValueError("give either seqs or count")
        return self


class UndoneSample(_Document):
    """A sample that was undone."""

    seq: int = Field(examples=[17])
    label: Name


class UndoneSamples(_Document):
    """The samples were undone, as if they had never been taught; the newest is first."""

    undone: list[UndoneSample]
    samples: int = Field(examples=[15])


class Forgotten(_Document):
    """The class was forgotten."""

    label: str = Field(examples=["mug"])
    removed: int = Field(description="Samples removed from memory.", examples=[9])


class Rename(_Document):
    """The new label."""

    to: str = Field(min_length=1, max_length=100, examples=["coffee mug"])


class Renamed(_Document):
    """The class was renamed."""

    label: str = Field(examples=["coffee mug"])


class Merge(_Document):
    """The class to merge into."""

    into: str = Field(min_length=1, max_length=1000, examples=["cup"])


class Merged(_Document):
    """The classes were merged."""

    into: str = Field(examples=["cup"])
    moved: int = Field(description="Samples in memory that were moved.", examples=[9])


class Health(_Document):
    """Whether the service is alive or ready."""

    status: str = Field(examples=["ok"])


class Problem(_Document):
    """An error: what is wrong and what to do."""

    detail: str = Field(examples=["mug.txt is not a supported image: use JPEG, PNG, WEBP"])
