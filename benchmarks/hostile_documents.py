"""Open forged results, recipes, teachable files and ONNX files: each opens, or one typed sentence.

    python -m benchmarks.hostile_documents [--files 2000] [--seed 0] [--kinds result,recipe,…]

As in :mod:`benchmarks.hostile_files`: sound files are changed inside, where it hurts, and every
hash is made right again. A traceback, an import, a file outside the folder, or more than 200 MB of
memory is a failure.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import torch

import verse
from benchmarks.hostile_files import (
    MOST_BYTES,
    Random,
    Sound,
    backbone,
    change_document,
    hostile_checkpoint,
    nasty,
    outcome,
    use,
)
from verse import backbones
from verse.backbones import onnx_wire as wire
from verse.backbones.onnx_read import Field, read_fields, write_fields
from verse.durable.begin import begin
from verse.experiments import Run, grid
from verse.experiments.jsonl import Json, digest, seal, unseal
from verse.experiments.line import USUAL, encode
from verse.experiments.recipe import read_recipe
from verse.experiments.run import LATER, identify
from verse.experiments.store import Store
from verse.reports import report

KINDS = ("result", "recipe", "teachable", "onnx")
PLANTED = ("planted", "antigravity", "this")
RECIPE: dict[str, Any] = {
    "title": "Replay",
    "datasets": ["tabletop", {"name": "folder:x", "thin": 2}],
    "orders": ["iid", "class-instance"],
    "seeds": 2,
    "capacities": ["4%", "20/class", "3MB"],
    "backbones": ["efficientnet-lite0", {"name": "resnet18", "at": "fc"}],
    "holdout": "last:3",
    "learners": [
        "verse",
        {"name": "tinyer", "settings": {"C": 48}, "seeds": [7, 8]},
        {"name": "der", "sweep": {"lr": [0.003, 0.01], "clip": ["none", 1.0]}},
    ],
    "tuned": {"verse": {"r": 0.05}},
    "options": {"a": 1},
    "fps": 5.0,
    "offline": True,
}


class Grounds:
    """Sound files of each kind, made once."""

    def __init__(self, place: Path, kinds: tuple[str, ...]) -> None:
        self.checkpoints = Sound(place) if "teachable" in kinds else None
        self.results = place / "results"
        if "result" in kinds:
            make_results(self.results)


def make_results(folder: Path) -> None:
    """A store of a few runs over points, with everything that a line may hold."""
    from tests.reports.made import made

    store = Store(folder)
    for learner in ("verse", "ncm"):
        for seed in (0, 1):
            store.add(encode(made(learner, seed, (0.9, 0.5, 0.7 + seed / 10))))
    store.add(encode(made("slda", 0, (0.5, 0.5, 0.5), bound=(), order="iid")))


# ---- results ------------------------------------------------------------------------------------


def hostile_results(sound: Path, rng: Random, folder: Path) -> None:
    """A store one of whose lines says something else; hashes, names and identities fit again."""
    shutil.copytree(sound, folder)
    files = sorted(folder.glob("*/*.jsonl"))
    file = files[int(rng.integers(len(files)))]
    lines = file.read_bytes().splitlines()
    place = int(rng.integers(len(lines)))
    if rng.random() < 0.1:  # no hash can make these right
        lines[place] = [b"\xff\xfe", b"[" * 100_000, b"null", b"{}", b'{"hash": []}', b"1" * 9999][
            int(rng.integers(6))
        ]
        file.write_bytes(b"\n".join(lines) + b"\n")
        return
    value = unseal(lines[place])
    before = digest(value)
    change_document(value, rng)
    if isinstance(value.get("run"), dict) and rng.random() < 0.7:
        repair_identity(value)
    lines[place] = seal_if_possible(value)
    file.write_bytes(b"\n".join(lines) + b"\n")
    if (
        file.name == "shared.jsonl" and b'"0000000000000000"' not in lines[place]
    ):  # whoever names the old value names the new one
        for other in files:
            text = other.read_bytes()
            if other != file and before.encode() in text:
                sealed = [rename(unseal(one), before, digest(value)) for one in text.splitlines()]
                other.write_bytes(b"".join(seal(one) for one in sealed))


def rename(line: Json, old: str, new: str) -> Json:
    return {key: new if value == old else value for key, value in line.items()}


def repair_identity(value: Json) -> None:
    try:
        record = LATER | USUAL | {"at": None} | value["run"]
        value["id"] = identify(record | {"settings": record["settings"] | value["defaults"]})
    except (KeyError, TypeError, ValueError):
        return  # what is left is no record at all


def seal_if_possible(value: Json) -> bytes:
    try:
        return seal(value).rstrip(b"\n")
    except ValueError:  # half a character: no hash is right
        return json.dumps(value | {"hash": "0" * 16}).encode()


def open_results(folder: Path) -> None:
    store = Store(folder)
    store.ids()
    store.digest()
    found = report.read_results(folder)
    json.dumps(report.document(found), default=str)


# ---- recipes ------------------------------------------------------------------------------------


def hostile_recipe(rng: Random, file: Path) -> None:
    table = json.loads(json.dumps(RECIPE))
    change_document(table, rng)
    if rng.random() < 0.1:
        table[str(rng.choice(list(RECIPE)))] = nasty(rng)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(10 * limit)  # for writing what is deep, not for reading it
    text = "".join(f"{quoted(key)} = {toml(value)}\n" for key, value in table.items())
    sys.setrecursionlimit(limit)
    if rng.random() < 0.1:  # what TOML has and JSON has not
        numbers = list(re.finditer(r"(?<= )\d+(?:\.\d+)?", text))
        if numbers:
            one = numbers[int(rng.integers(len(numbers)))]
            text = text[: one.start()] + str(rng.choice(TOML_ONLY)) + text[one.end() :]
    content = text.encode("utf-8", "replace")
    if rng.random() < 0.1:
        at = int(rng.integers(len(content)))
        content = content[:at] + rng.bytes(3) + content[at + int(rng.integers(9)) :]
    file.write_bytes(content)


TOML_ONLY = ("1979-05-27", "1979-05-27T07:32:00Z", "07:32:00", "nan", "-inf", "0xdead", "1e999")


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=True).replace("\\ud800", "\\u00e9")


def toml(value: Any) -> str:
    """A value as TOML writes it; what TOML has no word for is left empty, which is wrong, too."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{quoted(k)} = {toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return {"None": "", "True": "true", "False": "false"}.get(repr(value), repr(value))


def open_recipe(file: Path, folder: Path) -> None:
    grid.plan_tasks(list(read_recipe(file).runs)[:50], Store(folder), partials=False)


# ---- ONNX files ---------------------------------------------------------------------------------


def sound_network() -> bytes:
    """A convolution, bytes of pixels in."""
    weight = np.random.default_rng(1).standard_normal((4, 3, 3, 3)).astype(np.float32)
    nodes = [
        wire.node("Cast", ["input"], "float", {"to": 1}),
        wire.node("Conv", ["float", "weight"], "conv", {"strides": [2, 2]}),
        wire.node("Relu", ["conv"], "out"),
    ]
    return wire.model(
        nodes,
        [wire.tensor("weight", weight)],
        [wire.value("input", "uint8", ("n", 3, 16, 16))],
        [wire.value("out", "float32", ("n", 4, 7, 7))],
        {"preprocess": json.dumps({"mean": [0, 0, 0], "std": [1, 1, 1], "fit": "stretch"})},
    )


NUMBERS = (0, 1, 2, 3, 7, 16, 255, 2**31 - 1, 2**31, 2**40, 2**63, 2**64 - 1)
BYTES = (
    b"",
    b"\0" * 8,
    b"../weights",
    b"/etc/passwd",
    b"x" * 5000,
    b"\xff\xff\xff\xff\x7f",
    b"If",
    b"Loop",
    b"ConstantOfShape",
    b"Expand",
    b"Tile",
    b"Resize",
    b"Pad",
    b"input",
    b"out",
    b"weight",
    b"com.microsoft",
)


def change_message(data: bytes, rng: Random, depth: int = 0) -> bytes:
    """One field, somewhere inside, is another, gone, twice, or one more."""
    try:
        fields = read_fields(data)
    except verse.types.VerseError:
        fields = []
    if not fields:
        return BYTES[int(rng.integers(len(BYTES)))]
    place = int(rng.integers(len(fields)))
    number, value = fields[place]
    if isinstance(value, bytes) and depth < 6 and rng.random() < 0.75:
        fields[place] = (number, change_message(value, rng, depth + 1))
        return write_fields(fields)
    kind, changed = int(rng.integers(5)), list[Field](fields)
    if kind == 0:
        del changed[place]
    elif kind == 1:
        changed.insert(place, fields[place])
    elif kind == 2 and number > 0:
        changed[place] = (number, other_value(value, rng))
    elif kind == 3:
        changed.append((int(rng.integers(1, 26)), other_value(b"", rng)))
    else:
        changed.append((int(rng.integers(1, 26)), NUMBERS[int(rng.integers(len(NUMBERS)))]))
    return write_fields(changed)


def other_value(value: int | bytes, rng: Random) -> int | bytes:
    if isinstance(value, int):
        return NUMBERS[int(rng.integers(len(NUMBERS)))]
    return BYTES[int(rng.integers(len(BYTES)))]


def hostile_network(rng: Random, file: Path) -> None:
    content = sound_network()
    for _ in range(int(rng.integers(1, 3))):
        content = change_message(content, rng)
    file.write_bytes(content)


def open_network(file: Path) -> None:
    network = backbones.build(f"onnx:{file}", threads=1)
    z = network.G([np.zeros((20, 20, 3), np.uint8)])
    assert torch.isfinite(z).all(), "a feature that is none"


# ---- opening ------------------------------------------------------------------------------------


def attack(files: int, seed: int, place: Path, kinds: tuple[str, ...] = KINDS) -> Counter[str]:
    """Open so many of each kind in turn; what came of them."""
    rng, counts = np.random.default_rng(seed), Counter[str]()
    (place / "sound").mkdir()
    grounds = Grounds(place / "sound", kinds)
    Run("tabletop", learner="ncm")  # what a sound recipe imports is no import of a hostile one
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for n in range(files):
        ground = place / f"ground {n}"
        ground.mkdir()
        kind = kinds[n % len(kinds)]
        try:
            counts[f"{kind}: {open_one(kind, grounds, rng, ground)}"] += 1
        except BaseException as error:
            raise AssertionError(f"{kind}, file {n} of seed {seed}: {error!r}") from error
        known = {"results", "recipe.toml", "hostile.verse", "begun", "net.onnx"}
        assert {f.name for f in ground.iterdir()} <= known, "a file outside"
        assert {f.name for f in place.iterdir()} == {"sound", ground.name}, "a file outside"
        shutil.rmtree(ground)
    assert not {m for m in sys.modules if m.split(".")[0] in PLANTED}, "an import"
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert grown <= MOST_BYTES, f"{grown / 2**20:.0f} MiB of memory"
    counts["MiB of memory more"] = grown // 2**20
    return counts


def open_one(kind: str, grounds: Grounds, rng: Random, ground: Path) -> str:
    if kind == "result":
        hostile_results(grounds.results, rng, ground / "results")
        return outcome(lambda: open_results(ground / "results"))
    if kind == "recipe":
        hostile_recipe(rng, ground / "recipe.toml")
        return outcome(lambda: open_recipe(ground / "recipe.toml", ground / "results"))
    if kind == "onnx":
        hostile_network(rng, ground / "net.onnx")
        return outcome(lambda: open_network(ground / "net.onnx"))
    assert grounds.checkpoints is not None
    hostile_checkpoint(grounds.checkpoints, rng, ground / "hostile.verse")

    def go_on() -> None:
        begin(ground / "begun", ground / "hostile.verse", backbone=backbone())
        with verse.open(ground / "begun", backbone=backbone()) as classifier:
            use(classifier)

    return outcome(go_on)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", default=",".join(KINDS))
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as place:
        counts = attack(options.files, options.seed, Path(place), tuple(options.kinds.split(",")))
    for name, count in sorted(counts.items()):
        print(f"{count:7,} {name}")


if __name__ == "__main__":
    main()
