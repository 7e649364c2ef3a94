"""The plastic network that learners train: its parameters as one vector, its fast convolutions.

Belongs here: code that computes with weights and stores them. Does not belong here: code that
decides how they change; that is a learner.
"""

from __future__ import annotations

from verse.network.net import Net
from verse.network.plastic import Head, Plastic, head_capacity
from verse.network.vector import Layout, Vector, stochastic_ema

__all__ = ["Head", "Layout", "Net", "Plastic", "Vector", "head_capacity", "stochastic_ema"]
