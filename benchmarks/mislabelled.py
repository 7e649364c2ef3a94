"""Does `verse doctor` find a wrong label? The second table of docs/trust.md.

    VERSE_DATA=… python -m benchmarks.mislabelled

200 training frames of 8 (or all) classes, one of them with a wrong label, both drawn at random: 40
trials. Counts how often that frame is the first suspect, and how often it is among the first three.
"""

from __future__ import annotations

import numpy as np

from benchmarks.default_choice import SETS
from verse import StreamClassifier
from verse.doctor import diagnose
from verse.experiments.prepare import prepare
from verse.experiments.run import Run
from verse.novelty import measured_features

TRIALS, SAMPLES = 40, 200
FIRST_SEED = 1000  # those from 0 on were looked at when the estimates were chosen
CASES = (("eth80", 8), ("asl", 8), ("asl", 29))


def main() -> None:
    print("| data | classes | first | among the first three | trials |\n|---|--:|--:|--:|--:|")
    for name, count in CASES:
        ready = prepare(Run(f"folder:{name}", **SETS[name]))
        learner = StreamClassifier(backbone=ready.backbone).learner
        first = among = 0
        for seed in range(FIRST_SEED, FIRST_SEED + TRIALS):
            random = np.random.default_rng(seed)
            classes = np.sort(random.permutation(np.unique(ready.train.y))[:count])
            rows = random.permutation(np.flatnonzero(np.isin(ready.train.y, classes)))[:SAMPLES]
            y = np.searchsorted(classes, ready.train.y[rows])
            wrong = int(random.integers(len(rows)))
            y[wrong] = (y[wrong] + random.integers(1, count)) % count
            E = measured_features(learner, learner.F.stored(ready.train[rows]))
            report = diagnose(E, y.tolist(), [str(c) for c in classes], seqs=list(range(len(rows))))
            suspects = [suspect.seq for suspect in report.suspects[:3]]
            first += suspects[:1] == [wrong]
            among += wrong in suspects
        print(f"| {name} | {count} | {first} | {among} | {TRIALS} |", flush=True)


if __name__ == "__main__":
    main()
