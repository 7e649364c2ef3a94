"""VERSE whose global loss has the new sample in it, which the paper's has not."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from verse.learners.verse import VERSE


class VERSENewSample(VERSE):
    """VERSE with the new sample in the global loss: D_M is the new sample and C draws.

    In VERSE as written a new sample moves θ only from where it is looked at, and later when it is
    drawn from memory. This variant shows how much that costs.

    >>> import torch
    >>> from verse.network import Head, Plastic
    >>> from verse.memory import ClassBalanced
    >>> F = Plastic(torch.nn.Identity(), Head(4), z_shape=(4,))
    >>> learner = VERSENewSample(F, ClassBalanced(20))
    >>> for t in range(40):
    ...     learner.learn_one(torch.eye(4)[t % 2] * 3, t % 2)
    >>> learner.predict_one(torch.eye(4)[1] * 3)
    1
    """

    name: ClassVar[str] = "verse-new-sample"
    traits = replace(
        VERSE.traits,
        fidelity="adapted",
        adaptation="a variant of this project: the new sample is in the global loss, too.",
    )
    NEW_IN_GLOBAL: ClassVar[bool] = True
