"""VERSE whose global loss has the new sample in it, which the paper's has not."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from verse.learners.verse import VERSE


class VERSENewSample(VERSE):
    """VERSE with the new sample in the global loss: D_M is the new sample and C draws.

    In VERSE as written a new sample moves θ only from where it is looked at, and later when it is
    drawn from memory. This variant tells whether that is what it lacks.
    """

    name: ClassVar[str] = "verse-new-sample"
    traits = replace(
        VERSE.traits,
        fidelity="adapted",
        adaptation="a variant of this project: the new sample is in the global loss, too.",
    )
    NEW_IN_GLOBAL: ClassVar[bool] = True
