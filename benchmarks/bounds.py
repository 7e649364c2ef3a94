"""How strong is Offline? Beside it closed-form classifiers on what F is given, all classes at once.

    VERSE_DATA=… python benchmarks/bounds.py [DATASET] [--holdout RULE] [--thin N]
                                             [--validation RULE] [--seed N]

Accuracy of Offline, and of discriminant analysis and ridge regression on the embedding of F's start
weights and on the pooled input of F, on test videos or, with --validation, on videos taken out of
training. docs/learners/offline.md has its figures.
"""

from __future__ import annotations

import argparse

import torch

from verse.experiments.execute import prepare
from verse.experiments.gate import looked_at
from verse.experiments.offline import bounds
from verse.experiments.run import Run
from verse.kernels.discriminant import lda_accuracy, ridge_accuracy
from verse.learners.fixed_features import CHOICES
from verse.streams import Schedule

SHRINKAGES = (1e-4, 1e-3, 1e-2, 1e-1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, usage=argparse.SUPPRESS)
    parser.add_argument("dataset", nargs="?", default="folder:eth80")
    parser.add_argument("--holdout", default="last:3")
    parser.add_argument("--thin", type=int, default=1)
    parser.add_argument("--validation")
    parser.add_argument("--seed", type=int, default=0)
    options = vars(parser.parse_args())
    run = Run(**options, order="iid")
    ready = prepare(run)
    schedule = Schedule.of("iid", ready.train.y)
    bound = bounds(ready, schedule, run, lambda stage: None)[-1]
    print(f"Offline: {bound.accuracy:.3f} after {bound.epochs} epochs, flat: {bound.flat}")
    sides = (ready.train, ready.test)
    for choice in CHOICES:
        E, E_test = (looked_at(ready.backbone.F, side, choice) for side in sides)
        y, y_test = (torch.tensor(side.y) for side in sides)
        lda = [lda_accuracy(E, y, E_test, y_test, shrinkage=s) for s in SHRINKAGES]
        told = ", ".join(f"{a:.3f} ({s:g})" for s, a in zip(SHRINKAGES, lda, strict=True))
        print(f"{choice}, {E.shape[1]} values: ridge {ridge_accuracy(E, y, E_test, y_test):.3f}, "
              f"discriminant analysis {told}")  # fmt: skip


if __name__ == "__main__":
    main()
