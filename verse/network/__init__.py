"""The plastic network that learners train: its parameters as one vector, its fast convolutions.

Here goes what computes and stores weights. What decides how they change does not: that is a
learner.
"""

from __future__ import annotations

from verse.network.net import Net
from verse.network.plastic import Head, Plastic, head_capacity
from verse.network.vector import Layout, Vector

__all__ = ["Head", "Layout", "Net", "Plastic", "Vector", "head_capacity"]
