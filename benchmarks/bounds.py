"""How strong is Offline? Beside it closed-form classifiers on what F is given, all classes at once.

    VERSE_DATA=… python benchmarks/bounds.py [DATASET] [--holdout RULE] [--thin N]
                                             [--validation RULE] [--seed N]

Accuracy of Offline, and of discriminant analysis and ridge regression on every feature set that
methods of statistics use, on test videos or, with --validation, on videos taken out of
training. docs/learners/offline.md has its figures.
"""

from __future__ import annotations

import argparse

from verse.experiments.execute import prepare
from verse.experiments.offline import bounds
from verse.experiments.run import Run
from verse.streams import Schedule


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
    for name, accuracy in bound.closed.items():
        print(f"{name}: {accuracy:.3f}")
    print(f"the reference, chosen on held-out training videos: {bound.best} {bound.reference:.3f}")


if __name__ == "__main__":
    main()
