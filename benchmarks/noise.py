"""Are frames that show nothing refused? The table of noise in docs/trust.md.

    VERSE_DATA=… python -m benchmarks.noise [SET …]

Two thirds of the classes of each set are taught, 10 frames of each (training videos, random order).
Then 100 frames of each kind are asked about, drawn with a fixed seed:

- uniform: every value of every pixel by itself;
- 1/f: noise with the spectrum of natural images and the mean and spread of ImageNet's colours;
- scrambled: a validation frame of the set whose phases are random, so only its spectrum is left;
- patches: a validation frame cut into 7 × 7 squares that are shuffled;
- black: 0 everywhere; dark: a covered lens, 0 to 6 everywhere.

"by pixels" is the share that a look at the pixels refuses, "by statistics" the share that the
novelty of the features alone refuses, "refused" what ``ask`` refuses. The last line of a set is its
real validation frames of taught classes, for comparison. Mean over three seeds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.default_choice import SETS
from verse import StreamClassifier
from verse.experiments.prepare import Prepared, prepare
from verse.experiments.run import Run
from verse.images import rgb, shows_nothing
from verse.novelty import measure_novelty

Pixels = npt.NDArray[np.uint8]
SIZE, COUNT, SEEDS, SAMPLES = 224, 100, range(3), 10
MEAN, STD = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
PATCHES = 7


def uniform(random: np.random.Generator) -> Pixels:
    return random.integers(0, 256, (SIZE, SIZE, 3), dtype=np.uint8)


def one_over_f(random: np.random.Generator) -> Pixels:
    y, x = np.meshgrid(np.fft.fftfreq(SIZE), np.fft.fftfreq(SIZE), indexing="ij")
    frequency = np.hypot(y, x)
    frequency[0, 0] = np.inf
    planes = np.fft.ifft2(np.fft.fft2(random.normal(size=(3, SIZE, SIZE))) / frequency).real
    planes = (planes - planes.mean((1, 2), keepdims=True)) / planes.std((1, 2), keepdims=True)
    # colours of photos go together: most of the noise is the same in all three
    planes = 0.9 * planes[:1] + 0.44 * planes
    pixels = planes.transpose(1, 2, 0) * STD + MEAN
    return (255 * pixels.clip(0, 1)).astype(np.uint8)


def scrambled(random: np.random.Generator, photo: Pixels) -> Pixels:
    noise = np.fft.fft2(random.normal(size=photo.shape[:2]))
    phase = np.exp(1j * np.angle(noise))[..., None]
    spectrum = np.fft.fft2(photo.astype(float), axes=(0, 1))
    mean = photo.mean((0, 1))
    pixels = np.fft.ifft2(np.abs(spectrum) * phase, axes=(0, 1)).real
    return (pixels - pixels.mean((0, 1)) + mean).clip(0, 255).astype(np.uint8)


def patches(random: np.random.Generator, photo: Pixels) -> Pixels:
    side = min(photo.shape[:2]) // PATCHES
    cut = photo[: side * PATCHES, : side * PATCHES]
    cut = cut.reshape(PATCHES, side, PATCHES, side, 3).swapaxes(1, 2).reshape(-1, side, side, 3)
    shuffled = random.permutation(cut).reshape(PATCHES, PATCHES, side, side, 3)
    return shuffled.swapaxes(1, 2).reshape(PATCHES * side, PATCHES * side, 3)


def frames(ready: Prepared) -> dict[str, list[Pixels]]:
    """100 of each kind."""
    random, test = np.random.default_rng(0), ready.dataset.test
    chosen = np.sort(random.choice(len(test), min(COUNT, len(test)), replace=False))
    photos = [rgb(test.read(int(i))) for i in chosen]
    made: dict[str, Callable[[Pixels], Pixels]] = {
        "uniform": lambda _: uniform(random),
        "1/f": lambda _: one_over_f(random),
        "scrambled": lambda photo: scrambled(random, photo),
        "patches": lambda photo: patches(random, photo),
        "black": lambda _: np.zeros((SIZE, SIZE, 3), np.uint8),
        "dark": lambda _: random.integers(0, 7, (SIZE, SIZE, 3), dtype=np.uint8),
    }
    return {kind: [make(photo) for photo in photos] for kind, make in made.items()}


def teach(ready: Prepared, seed: int) -> tuple[StreamClassifier, Any]:
    random, y = np.random.default_rng([seed, SAMPLES]), ready.train.y
    classes = random.permutation(np.unique(y))
    taught = classes[round(len(classes) / 3) :]
    rows = [random.permutation(np.flatnonzero(y == c))[:SAMPLES] for c in taught]
    classifier = StreamClassifier(backbone=ready.backbone, seed=seed)
    for i in random.permutation(np.concatenate(rows)):
        classifier.learn_feature(ready.train[np.array([i])][0], int(y[i]))
    return classifier, taught


def main() -> None:
    print("| data | frames | by pixels | by statistics | refused |\n|---|---|--:|--:|--:|")
    for name in sys.argv[1:] or SETS:
        ready = prepare(Run(f"folder:{name}", **SETS[name]))
        taught = [teach(ready, seed) for seed in SEEDS]

        def refused(classifier: StreamClassifier, Z: Any) -> Any:
            measures = measure_novelty(classifier.learner, Z)
            return classifier.novelty.judge(measures, refused=classifier.refused).numpy() > 1

        G = ready.backbone.G
        for kind, pictures in frames(ready).items():
            inputs = [G.preprocess(picture) for picture in pictures]
            nothing = np.array([shows_nothing(picture) for picture in inputs])
            Z = ready.backbone.G(pictures)
            unknown = np.array([refused(classifier, Z) for classifier, _ in taught])
            share = [nothing.mean(), unknown.mean(), (unknown | nothing).mean()]
            cells = " | ".join(f"{value:.3f}" for value in share)
            print(f"| {name} | {kind} | {cells} |", flush=True)
        real = []
        for classifier, classes in taught:
            Z = ready.test[np.flatnonzero(np.isin(ready.test.y, classes))]
            real.append(refused(classifier, Z).mean())
        print(f"| {name} | real, taught | – | {np.mean(real):.3f} | {np.mean(real):.3f} |")


if __name__ == "__main__":
    main()
