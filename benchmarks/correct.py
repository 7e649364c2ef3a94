"""How long does a correction take, and an undo? The third table of docs/trust.md.

    python -m benchmarks.correct [--trials 30]

Through a real ``verse serve``, over HTTP. A correction: the frame that was just answered is taught
by its id as another class, and the same image is asked about again. An undo: 20 lessons, taken back
by one request. Medians and 95th percentiles; the images are rendered videos (`tabletop`).
"""

from __future__ import annotations

import argparse
import io
import time

import numpy as np
from PIL import Image

from benchmarks.load import server
from verse import datasets
from verse.serve.client import Client

HOLD = 20


def encode(pixels: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG")
    return file.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=30)
    trials = parser.parse_args().trials
    table = datasets.load("tabletop", options={"frames": 8, "instances": 2, "sessions": 2})
    train, test, random = table.train, table.test, np.random.default_rng(0)
    frames = [
        (encode(train.read(i)), table.classes[train.labels[i]])
        for i in random.permutation(len(train))[:120]
    ]
    corrections, undone, right = [], [], 0
    with server() as served, Client(served.url) as client:
        for image, label in frames:
            client.learn(image, label)
        for i in random.permutation(len(test))[:trials]:
            image, label = encode(test.read(i)), table.classes[test.labels[i]]
            asked = client.predict(image)
            start = time.perf_counter()
            client.learn_frame(asked["frame"], label)
            again = client.predict(image)
            corrections.append(time.perf_counter() - start)
            right += again["nearest"] == label
        for _ in range(trials):
            for image, label in frames[:HOLD]:
                client.learn(image, label)
            start = time.perf_counter()
            client.undo_last(HOLD)
            undone.append(time.perf_counter() - start)
    print("| what | median | 95th percentile |\n|---|--:|--:|")
    for what, seconds in (("correction", corrections), (f"undo of {HOLD}", undone)):
        median, high = np.percentile(seconds, [50, 95])
        print(f"| {what} | {median:.3f} s | {high:.3f} s |")
    print(f"\nafter the correction the answer is the right one in {right} of {trials} trials")


if __name__ == "__main__":
    main()
