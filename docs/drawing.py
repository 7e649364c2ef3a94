"""The drawing of docs/architecture.md: three ways through the code, each step a file.

``docs/generate.py`` writes it; tests/test_architecture.py follows each way and compares.
"""

from __future__ import annotations

from html import escape

FRAME = "One frame: classifier.learn_one(image, label)"
RUN = "One run: verse run folder:photos"
LESSON = "One HTTP lesson: POST /v1/learn"

WAYS: dict[str, list[tuple[str, str]]] = {
    FRAME: [
        ("classifier.py", "takes an image, a label"),
        ("images.py", "opens the image"),
        ("backbones/preprocess.py", "crops and scales it"),
        ("backbones/engine.py", "G: image → feature z"),
        ("feature_classifier.py", "z and label together"),
        ("novelty/threshold.py", "is z usual so far?"),
        ("learners/base.py", "learns all or nothing"),
        ("learners/verse_joint.py", "one step of the method"),
        ("network/linear.py", "gradients of F"),
        ("memory/class_balanced.py", "keeps z, or not"),
    ],
    RUN: [
        ("experiments/run.py", "the record of a run"),
        ("experiments/prepare.py", "all before the stream"),
        ("datasets/folder.py", "frames, videos, classes"),
        ("features/store.py", "G once a frame, on disk"),
        ("streams.py", "the order of frames"),
        ("experiments/execute.py", "starts, saves, resumes"),
        ("evaluate.py", "the only loop"),
        ("learners/base.py", "learns and answers"),
        ("metrics.py", "accuracy at each test"),
        ("experiments/result.py", "what is written"),
    ],
    LESSON: [
        ("serve/guard.py", "limits of each client"),
        ("serve/routes/teach.py", "the request"),
        ("serve/workers/decoder.py", "decodes in a process"),
        ("serve/session.py", "queues the lesson"),
        ("serve/workers/writer.py", "one thread writes"),
        ("durable/classifier.py", "the folder on disk"),
        ("durable/write_ahead.py", "first the log, then learn"),
        ("durable/journal.py", "flushed to disk"),
        ("feature_classifier.py", "learns, as above"),
        ("serve/snapshot.py", "publishes, then answers"),
    ],
}

COLUMNS, WIDTH, HEIGHT, GAP = 5, 176, 54, 20
COLOURS = {FRAME: "#2f6f4f", RUN: "#2b5d8a", LESSON: "#8a4b2b"}


def svg() -> str:
    """The picture: a band for each way, its steps from left to right in two rows."""
    band = 2 * HEIGHT + 3 * GAP + 22
    size = COLUMNS * (WIDTH + GAP) + GAP, len(WAYS) * band + GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size[0]} {size[1]}" '
        'font-family="sans-serif" role="img" aria-label="Three ways through the code">',
        f'<rect width="{size[0]}" height="{size[1]}" fill="#ffffff"/>',
        '<defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0 0 8 4 0 8z" fill="#555"/></marker></defs>',
    ]
    for row, (title, steps) in enumerate(WAYS.items()):
        parts += _band(title, steps, GAP + row * band)
    return "\n".join([*parts, "</svg>\n"])


def _band(title: str, steps: list[tuple[str, str]], top: int) -> list[str]:
    parts = [
        f'<text x="{GAP}" y="{top + 12}" font-size="15" font-weight="bold" '
        f'fill="{COLOURS[title]}">{escape(title)}</text>'
    ]
    places = [
        (GAP + i % COLUMNS * (WIDTH + GAP), top + 24 + i // COLUMNS * (HEIGHT + GAP))
        for i in range(len(steps))
    ]
    for i, ((file, does), (x, y)) in enumerate(zip(steps, places, strict=True)):
        parts.append(
            f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="6" fill="#f7f7f5" '
            f'stroke="{COLOURS[title]}"/>'
            f'<text x="{x + 9}" y="{y + 22}" font-size="12.5" font-family="monospace" '
            f'fill="#111">{escape(file)}</text>'
            f'<text x="{x + 9}" y="{y + 41}" font-size="12.5" fill="#333">{escape(does)}</text>'
        )
        if i + 1 < len(steps):
            parts.append(_arrow(x, y, *places[i + 1]))
    return parts


def _arrow(x: int, y: int, to_x: int, to_y: int) -> str:
    if y == to_y:
        line = f"M{x + WIDTH} {y + HEIGHT // 2}H{to_x - 1}"
    else:  # to the beginning of the next row
        half = y + HEIGHT + GAP // 2
        line = f"M{x + WIDTH // 2} {y + HEIGHT}V{half}H{to_x + WIDTH // 2}V{to_y - 1}"
    return f'<path d="{line}" fill="none" stroke="#555" marker-end="url(#a)"/>'
