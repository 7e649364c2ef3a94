"""The gate of Offline: closed-form classifiers on the embedding that F starts with.

They use what F's own last layer is given before any training, so an Offline that falls behind both
has trained badly.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from verse.backbones.plastic import Plastic
from verse.evaluate import Samples
from verse.kernels.discriminant import lda_accuracy, ridge_accuracy
from verse.learners.fixed_features import FixedFeatures
from verse.learners.network import Net
from verse.learners.training import stored

BATCH = 256


def looked_at(F: Plastic, samples: Samples, choice: str = "embedding") -> Tensor:
    """Features [n, d] that training F does not change: the embedding of its start weights, or
    ``input``."""
    features = FixedFeatures(choice, Net(F))
    rows = (np.arange(at, min(at + BATCH, len(samples))) for at in range(0, len(samples), BATCH))
    return torch.cat([features(stored(F, samples[index])) for index in rows])


def closed_forms(F: Plastic, train: Samples, test: Samples) -> tuple[float, float]:
    """Test accuracy of (ridge regression, discriminant analysis)."""
    E, E_test = looked_at(F, train), looked_at(F, test)
    y, y_test = torch.from_numpy(train.y), torch.from_numpy(test.y)
    return ridge_accuracy(E, y, E_test, y_test), lda_accuracy(E, y, E_test, y_test)
