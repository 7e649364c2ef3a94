"""How long until a correction is known: teach the frame of an answer, ask about it again.

    python -m benchmarks.correction FOLDER [--trials 30]

FOLDER holds CLASS/OBJECT/….jpg. Two objects of each class are taught (20 photos of each class);
then photos of other objects are asked about, and those answered wrongly are corrected by their
frame's id. Measured is the time from sending the correction to the answer after it.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from pathlib import Path

from benchmarks.load import server
from verse.serve.client import Client


def photos(folder: Path) -> tuple[list[tuple[Path, str]], list[tuple[Path, str]]]:
    """(to teach, to ask), in random order with a fixed seed."""
    draw = random.Random(0)
    teach, ask = [], []
    for kind in sorted(path for path in folder.iterdir() if path.is_dir()):
        objects = [sorted(path.iterdir()) for path in sorted(kind.iterdir())]
        teach += [(path, kind.name) for path in draw.sample(objects[0] + objects[1], 20)]
        ask += [(path, kind.name) for views in objects[2:] for path in views]
    draw.shuffle(teach)
    draw.shuffle(ask)
    return teach, ask


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--trials", type=int, default=30)
    options = parser.parse_args()
    teach, ask = photos(options.folder)
    seconds: list[float] = []
    changed = asked = 0
    with server() as running, Client(running.url) as client:
        for path, label in teach:
            client.learn(path, label)
        for path, label in ask:
            image = path.read_bytes()
            answer = client.predict(image)
            asked += 1
            if answer["label"] == label:
                continue
            began = time.perf_counter()
            client.learn_frame(answer["frame"], label)
            changed += client.predict(image)["label"] == label
            seconds.append(time.perf_counter() - began)
            if len(seconds) == options.trials:
                break
    quarter, half, most = (1000 * q for q in statistics.quantiles(seconds, n=4))
    print(
        f"{len(seconds)} of {asked} answers corrected; {changed} changed in the next answer; "
        f"{half:.0f} ms (median; quartiles {quarter:.0f} to {most:.0f}, longest "
        f"{1000 * max(seconds):.0f})"
    )


if __name__ == "__main__":
    main()
