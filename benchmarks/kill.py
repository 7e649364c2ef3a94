"""Kill a process that changes a durable classifier in every way; an oracle knows what is right.

    python benchmarks/kill.py [--kills 1000] [--learners verse-joint,verse,derpp,slda,gdumb]

The process says what it is about to do and what it has done. Killed with -9 at a random moment,
also while it opens the directory, it must come back with all that it acknowledged: weights,
memory, classes and keys are compared, bit for bit, with a plain classifier that is taught the same
history in memory. What was under way may have happened or not, but wholly. At the end of each
round the files must hold no feature that was forgotten. Processes are forked, which makes a start
cheap; kill, files and recovery are the real ones.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

import verse
from verse import StreamClassifier, backbones
from verse.durable import timing, write_ahead
from verse.types import VerseError

DIM, LABELS, ROUND = 6, 5, 20
Operation = dict[str, Any]


def feature(number: int) -> torch.Tensor:
    """The feature of a lesson; every 40th is refused by learners that compute with it."""
    if number % 40 == 39:
        return torch.full((DIM,), 3e38)
    return torch.randn(DIM, generator=torch.Generator().manual_seed(number))


def digest(classifier: Any) -> str:
    """Weights, memory and classes."""
    found = hashlib.sha256(repr(classifier.classes).encode())
    for name, tensor in sorted(classifier.learner.state().items()):
        found.update(name.encode() + tensor.contiguous().numpy().tobytes())
    return found.hexdigest()


# ---- the process that is killed -----------------------------------------------------------------


def choose(classifier: Any, rng: np.random.Generator, number: int) -> Operation:
    """The next thing to do."""
    classes, undoable = classifier.classes, classifier.undoable
    kinds = ["learn"] * 14 + ["again", "undo", "undo_many", "rename", "merge", "consolidate"]
    kinds += ["forget_seqs", "forget_label"] * 1 + ["forget"] * (rng.random() < 0.5)
    kind = str(rng.choice(kinds))
    label = str(rng.choice(classes)) if classes else ""
    if kind in ("undo", "undo_many", "forget_seqs") and len(undoable) > 3:
        n = 1 if kind == "undo" else 3
        return {
            "kind": kind,
            "seqs": sorted(int(s) for s in rng.choice(undoable, n, replace=False)),
        }
    if kind in ("rename", "merge", "forget", "forget_label") and len(classes) > 2:
        other = next(c for c in classes if c != label)
        new = f"name {number}" if kind == "rename" else other
        return {"kind": kind, "label": label, "new": new}
    if kind == "consolidate":
        return {"kind": kind}
    if kind == "again" and number:
        number -= 1
    return {"kind": "learn", "number": number, "label": f"class {number % LABELS}"}


def perform(classifier: Any, operation: Operation) -> Any:
    kind = operation["kind"]
    if kind == "learn":
        z, key = feature(operation["number"]), f"key {operation['number']}"
        return classifier.learn_feature(z, operation["label"], key=key)
    if kind in ("undo", "undo_many"):
        return classifier.undo_many(operation["seqs"])
    if kind == "forget_seqs":
        return classifier.forget_exactly(seqs=operation["seqs"])
    if kind == "forget_label":
        return classifier.forget_exactly(label=operation["label"])
    if kind == "consolidate":
        return classifier.consolidate()
    if kind == "forget":
        return classifier.forget(operation["label"])
    return getattr(classifier, kind)(operation["label"], operation["new"])


def live(directory: Path, learner: str, seed: int, number: int, pipe: int) -> None:
    """Open, tell what is there, change it until killed."""

    def tell(*words: Any) -> None:
        os.write(pipe, (json.dumps(words) + "\n").encode())

    rng = np.random.default_rng(seed)
    classifier = opened(directory, learner)
    keys = {n: classifier.fate_of(f"key {n}") for n in range(max(0, number - 3), number)}
    seqs = {n: classifier.seq_of(f"key {n}") for n in keys}
    tell("open", digest(classifier), keys, seqs)
    while True:
        operation = choose(classifier, rng, number)
        tell("begin", operation)
        number = max(number, operation.get("number", -1) + 1)
        try:
            tell("done", perform(classifier, operation))
        except VerseError as error:
            tell("refused", f"{type(error).__name__}: {error}")


def opened(directory: Path, learner: str) -> Any:
    backbone = backbones.identity((DIM,))
    return verse.open(directory, backbone=backbone, learner=learner, keep="features")


# ---- the oracle ---------------------------------------------------------------------------------


@dataclass
class Oracle:
    """What was acknowledged, in order, and the classifier that a plain loop makes of it."""

    learner: str
    history: list[Operation] = field(default_factory=list)
    gone: list[int] = field(default_factory=list)  # lessons that no file may hold
    fates: dict[int, str] = field(default_factory=dict)

    def after(self, operation: Operation, seq: int | None = None) -> Oracle:
        """The same once an operation has happened."""
        new = Oracle(self.learner, list(self.history), list(self.gone), dict(self.fates))
        kind = operation["kind"]
        if kind == "learn":
            new.fates[operation["number"]] = "kept"
            new.history.append(operation | {"seq": seq})
        elif kind in ("undo", "undo_many", "forget_seqs", "forget_label"):
            fate = "undone" if kind.startswith("undo") else "forgotten"
            seqs = operation.get("seqs") or self.samples_of(operation["label"])
            for past in [p for p in self.history if p.get("seq") in seqs]:
                new.fates[past["number"]] = fate
                new.gone += [past["number"]] * (fate == "forgotten")
            new.history = [p for p in self.history if p.get("seq") not in seqs]
        else:
            if kind == "forget":
                seqs = self.samples_of(operation["label"])
                for past in [p for p in self.history if p.get("seq") in seqs]:
                    new.fates[past["number"]] = "forgotten"
                    new.gone.append(past["number"])
            new.history.append(operation)
        return new

    def samples_of(self, label: str) -> set[int]:
        """The numbers of the samples that a class has now."""
        name: dict[int, str] = {}
        for past in self.history:
            if past["kind"] == "learn":
                name[past["seq"]] = past["label"]
            elif past["kind"] in ("rename", "merge", "forget"):
                new = "" if past["kind"] == "forget" else past["new"]
                name = {s: new if n == past["label"] else n for s, n in name.items()}
        return {seq for seq, n in name.items() if n == label}

    def digest(self) -> str:
        plain = StreamClassifier(backbone=backbones.identity((DIM,)), learner=self.learner)
        for past in self.history:
            kind, label, new = past["kind"], past.get("label", ""), past.get("new", "")
            if kind == "learn":
                plain.learn_feature(feature(past["number"]), label)
            elif kind == "consolidate":
                plain.consolidate()
            elif label not in plain.classes:
                continue  # its samples were taken back
            elif kind == "forget":
                plain.forget(label)
            elif kind == "merge" and new in plain.classes:
                plain.merge(label, new)
            else:
                plain.rename(label, new)
        return digest(plain)


# ---- killing ------------------------------------------------------------------------------------


def one_life(directory: Path, learner: str, seed: int, number: int, seconds: float) -> list[Any]:
    """Start, wait, kill; what the process said."""
    inlet, outlet = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(inlet)
            live(directory, learner, seed, number, outlet)
        except BaseException as error:
            os.write(outlet, (json.dumps(["failed", repr(error)]) + "\n").encode())
        finally:
            os._exit(1)
    os.close(outlet)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(inlet, "rb") as said:
        lines = said.read().split(b"\n")
    return [json.loads(line) for line in lines[:-1]]  # what follows the last one was cut


def check_opening(words: list[Any], oracle: Oracle, open_end: Operation | None) -> Oracle:
    """Which of the two the directory came back with; neither is an error."""
    _, found, keys, seqs = words
    candidates = [oracle]
    if open_end is not None:
        seq = seqs.get(str(open_end["number"])) if "number" in open_end else None
        if open_end["kind"] != "learn" or keys.get(str(open_end["number"])) == "kept":
            candidates.append(oracle.after(open_end, seq))
    for candidate in candidates:
        known = {int(n): fate for n, fate in keys.items() if int(n) in candidate.fates}
        fates = {n: candidate.fates[n] for n in known}
        if candidate.digest() == found and known == fates:
            return candidate
    raise AssertionError(f"the state is none that it may be; under way was {open_end}")


def run_round(
    directory: Path, learner: str, rng: np.random.Generator, kills: int, seconds: float
) -> Counter[str]:
    """One directory, killed so often; what was acknowledged."""
    oracle, number, counts = Oracle(learner), 0, Counter[str]()
    open_end: Operation | None = None
    for _ in range(kills):
        life = float(rng.uniform(0, seconds))
        said = one_life(directory, learner, int(rng.integers(2**31)), number, life)
        counts["kills"] += 1
        if not said:
            counts["kills while opening"] += 1
            continue
        if said[0][0] == "failed":
            raise AssertionError(said[0][1])
        oracle, open_end = check_opening(said[0], oracle, open_end), None
        for words in said[1:]:
            if words[0] == "begin":
                open_end = words[1]
                number = max(number, open_end.get("number", -1) + 1)
                continue
            assert open_end is not None
            assert words[0] in ("done", "refused"), words
            kind = open_end["kind"]
            counts[kind if words[0] == "done" else f"{kind} refused"] += 1
            if words[0] == "done":
                repeated = kind == "learn" and open_end["number"] in oracle.fates
                if repeated:
                    assert oracle.fates[open_end["number"]] == "kept", "a false acknowledgement"
                else:
                    oracle = oracle.after(open_end, words[1] if kind == "learn" else None)
            elif kind == "learn":
                oracle.fates.setdefault(open_end["number"], "refused")
            open_end = None
        if open_end is not None:
            counts[f"killed during {open_end['kind']}"] += 1
    with opened(directory, learner) as last:
        keys = {str(n): last.fate_of(f"key {n}") for n in range(number)}
        seqs = {str(n): last.seq_of(f"key {n}") for n in range(number)}
        oracle = check_opening(["open", digest(last), keys, seqs], oracle, open_end)
        content = [file.read_bytes() for file in directory.iterdir()]
        for forgotten in oracle.gone:
            needle = feature(forgotten).numpy().tobytes()
            assert not any(needle in c for c in content), f"lesson {forgotten} is still in a file"
    return counts


def kill_often(kills: int, learners: list[str], seed: int, seconds: float = 0.5) -> Counter[str]:
    """Rounds with each learner in turn; what was acknowledged in all."""
    rng, counts, turn = np.random.default_rng(seed), Counter[str](), 0
    begin = time.monotonic()
    while counts["kills"] < kills:
        learner = learners[turn % len(learners)]
        turn += 1
        with tempfile.TemporaryDirectory() as place:
            n = min(ROUND, kills - counts["kills"])
            counts += run_round(Path(place) / "taught", learner, rng, n, seconds)
        print(f"{counts['kills']} kills, {time.monotonic() - begin:.0f} s ({learner})", flush=True)
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--learners", default="verse-joint,verse,derpp,slda,gdumb,icarl")
    parser.add_argument("--seconds", type=float, default=0.5, help="the longest life")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    small_windows()
    learners = options.learners.split(",")
    for learner in learners:  # torch loads much with its first step
        Oracle(learner).after({"kind": "learn", "number": 0, "label": "a"}, 1).digest()
    counts = kill_often(options.kills, learners, options.seed, options.seconds)
    for name, count in sorted(counts.items()):
        print(f"{count:7,} {name}")
    print("nothing acknowledged was lost, nothing came twice, every state bit for bit as expected")


def small_windows() -> None:
    """Checkpoints every few samples, so that every case comes up soon."""
    write_ahead.UNDO_WINDOW, timing.CHECKPOINT_EVERY, timing.LONGEST_JOURNAL = 10, 7, 40


if __name__ == "__main__":
    main()
