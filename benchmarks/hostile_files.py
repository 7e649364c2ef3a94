"""Open files that somebody forged: each opens, or is refused by one typed sentence.

    python benchmarks/hostile_files.py [--files 2000] [--seed 0]

Sound checkpoints and backups are changed where it hurts (shapes, types, NaN, labels, counts,
numbers, deep or huge documents, names and hashes of files, rows of the journal), and every
checksum is made right again. Counted is what came of them. A traceback, an import, a file outside
the folder, or more than 200 MB of memory is a failure.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import io
import json
import resource
import shutil
import sqlite3
import sys
import tempfile
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import verse
from verse import StreamClassifier, backbones, checkpoint
from verse.durable import backup, restore
from verse.durable.entry import checksum
from verse.types import VerseError

DIM = 6
LEARNERS = ("verse-joint", "verse", "derpp", "slda", "icarl", "exstream", "ewcpp", "gdumb")
NASTY: list[Any] = [
    None,
    True,
    -1,
    0,
    2**31,
    2**63,
    10**30,
    1e308,
    -0.5,
    "",
    "x",
    "../x",
    "/etc/passwd",
    [],
    {},
    "planted.X",
    "os.system",
    [[]],
    [None],
    {"a": {"b": []}},
    "x" * 100_000,
    "\0",
    "\ud800",
    [[1, 2]] * 50,
]
STATEMENTS = (
    "CREATE TRIGGER t AFTER INSERT ON entries BEGIN SELECT 1; END",
    "CREATE VIEW v AS SELECT 1",
    "DROP TABLE images",
    "DELETE FROM entries WHERE seq=5",
    "DELETE FROM meta",
    "PRAGMA user_version=77",
)
MOST_BYTES = 200 * 2**20
Random = np.random.Generator


def nasty(rng: Random) -> Any:
    if rng.random() < 0.05:
        return json.loads("[" * 400 + "]" * 400)
    return copy.deepcopy(NASTY[int(rng.integers(len(NASTY)))])


# ---- changing what a document or a tensor says --------------------------------------------------


def places(document: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a document."""
    found = [path] if path else []
    items: Any = ()
    if isinstance(document, dict):
        items = document.items()
    elif isinstance(document, list):
        items = enumerate(document)
    for key, value in items:
        found += places(value, (*path, key))
    return found


def change_document(document: dict[str, Any], rng: Random) -> None:
    """One to three places get something that does not belong there, or go."""
    for _ in range(int(rng.integers(1, 4))):
        all_places = places(document)
        if not all_places:
            return
        *way, last = all_places[int(rng.integers(len(all_places)))]
        inner: Any = document
        for key in way:
            inner = inner[key]
        if rng.random() < 0.2:
            del inner[last]
        else:
            inner[last] = nasty(rng)


def change_tensors(tensors: dict[str, torch.Tensor], rng: Random) -> None:
    """One tensor is not what it should be."""
    name = sorted(tensors)[int(rng.integers(len(tensors)))]
    tensor, kind = tensors[name], int(rng.integers(9))
    if kind == 0:
        del tensors[name]
    elif kind == 1 and tensor.is_floating_point():
        tensors[name] = torch.full_like(tensor, float(rng.choice([np.nan, np.inf, -np.inf])))
    elif kind == 2:
        tensors[name] = tensor.reshape(-1)[: tensor.numel() // 2].clone()
    elif kind == 3:
        tensors[name] = torch.cat([tensor.reshape(-1)] * 3)
    elif kind == 4:
        tensors[name] = tensor.to(torch.float64 if tensor.dtype != torch.float64 else torch.int8)
    elif kind == 5:
        tensors[name] = torch.full_like(tensor, -1)
    elif kind == 6:
        tensors[name] = torch.zeros((0,), dtype=tensor.dtype)
    elif kind == 7:
        tensors[name] = torch.full_like(tensor, 2**30 if tensor.dtype != torch.uint8 else 255)
    else:
        tensors[f"{name}.more"] = torch.ones(3)


def forge(tensors: dict[str, torch.Tensor], document: dict[str, Any]) -> bytes:
    """A checkpoint of that content with a right checksum."""
    raw = checkpoint.to_bytes(tensors, {})
    text = json.dumps(document)
    own, _ = checkpoint.from_bytes(raw, "forged")
    from safetensors.torch import save

    return save(own, {"verse": text, "sha256": checkpoint._checksum(own, text)})


# ---- what is changed ----------------------------------------------------------------------------


class Sound:
    """Sound files of every learner, to begin with."""

    def __init__(self, place: Path) -> None:
        self.files: list[tuple[dict[str, torch.Tensor], dict[str, Any]]] = []
        self.backups: list[bytes] = []
        for learner in LEARNERS:
            rng = np.random.default_rng(0)
            with verse.open(place / learner, backbone=backbone(), learner=learner) as classifier:
                for t in range(12):
                    z = torch.from_numpy(rng.normal(size=DIM).astype(np.float32))
                    classifier.learn_feature(z, f"class {t % 3}", key=f"k{t}")
                classifier.save(place / "one.verse")
            self.files.append(checkpoint.read(place / "one.verse"))
            backup(place / learner, place / "one.zip")
            self.backups.append((place / "one.zip").read_bytes())


def backbone() -> Any:
    return backbones.identity((DIM,))


def hostile_checkpoint(sound: Sound, rng: Random, file: Path) -> None:
    tensors, document = copy.deepcopy(sound.files[int(rng.integers(len(sound.files)))])
    if rng.random() < 0.5:
        change_tensors(tensors, rng)
    else:
        change_document(document if rng.random() < 0.3 else document["spec"], rng)
    try:
        file.write_bytes(forge(tensors, document))
    except (UnicodeEncodeError, TypeError):  # no file can hold that
        file.write_bytes(rng.bytes(100))


def hostile_backup(sound: Sound, rng: Random, file: Path, work: Path) -> None:
    """A backup whose journal, checkpoints or manifest are forged; hashes are made right."""
    with zipfile.ZipFile(
        io.BytesIO(sound.backups[int(rng.integers(len(sound.backups)))])
    ) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(parts.pop("manifest.json"))
    kind = int(rng.integers(3))
    if kind == 0:
        (work / "journal.sqlite").write_bytes(parts["journal.sqlite"])
        change_journal(work / "journal.sqlite", rng)
        parts["journal.sqlite"] = (work / "journal.sqlite").read_bytes()
    elif kind == 1:
        name = next(n for n in parts if n != "journal.sqlite")
        tensors, document = checkpoint.from_bytes(parts[name], name)
        if rng.random() < 0.5:
            change_tensors(tensors, rng)
        else:
            change_document(document["spec"], rng)
        try:
            parts[name] = forge(tensors, document)
        except (UnicodeEncodeError, TypeError):
            parts[name] = b""
    manifest["files"] = {n: hashlib.sha256(content).hexdigest() for n, content in parts.items()}
    if kind == 2:
        change_document(manifest, rng)
    with zipfile.ZipFile(file, "w", int(rng.choice([0, 0, 0, 8]))) as archive:
        archive.writestr("manifest.json", json.dumps(manifest))
        for name, content in parts.items():
            archive.writestr(name if rng.random() < 0.98 else "../outside", content)


def change_journal(file: Path, rng: Random) -> None:
    """A row says something else, with its checksum made right where it has one."""
    db = sqlite3.connect(file)
    try:
        kind = int(rng.integers(6))
        if kind == 0:
            (text,) = db.execute("SELECT value FROM meta WHERE name='options'").fetchone()
            options = json.loads(text)
            change_document(options, rng)
            text = json.dumps(options if rng.random() < 0.9 else nasty(rng))
            row = (text, checksum("options", text))
            db.execute("UPDATE meta SET value=?, checksum=? WHERE name='options'", row)
        elif kind == 1:
            seq = int(rng.integers(1, 13))
            arguments = json.dumps({"label": nasty(rng)} if rng.random() < 0.7 else nasty(rng))
            z = rng.bytes(int(rng.choice([0, 1, 24, 24, 100])))
            what = str(rng.choice(["learn", "forget", "rename", "merge", "no such thing", "undo"]))
            entry = (what, arguments, z, checksum(seq, what, arguments, z, "kept"), seq)
            db.execute("UPDATE entries SET kind=?, arguments=?, z=?, checksum=? WHERE seq=?", entry)
        elif kind == 2:
            db.execute("UPDATE checkpoints SET file=?", (str(nasty(rng)),))
        elif kind == 3:
            position = nasty(rng)
            position = position if isinstance(position, int) and position < 2**62 else -3
            db.execute("UPDATE checkpoints SET position=?", (position,))
        elif kind == 4:
            db.execute("UPDATE sqlite_sequence SET seq=?", (int(rng.choice([-5, 0, 3, 2**60])),))
        else:
            statement = STATEMENTS[int(rng.integers(len(STATEMENTS)))]
            db.execute(statement)
        db.commit()
    except (sqlite3.Error, UnicodeEncodeError, OverflowError):
        db.rollback()
    finally:
        db.close()


# ---- opening ------------------------------------------------------------------------------------


def use(classifier: Any) -> None:
    """What opens must answer and learn, or refuse."""
    z = torch.linspace(-1, 1, DIM)
    answer = classifier.predict_feature(z)
    assert all(np.isfinite(p) for p in answer.probabilities.values()), "an answer that is none"
    try:
        classifier.learn_feature(z, "one more")
    except VerseError:
        return


def outcome(act: Callable[[], Any]) -> str:
    """ "opened", or the kind of the error; anything but one typed sentence is raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            act()
        except VerseError as error:
            told, kind = str(error), type(error).__name__
        else:
            return "opened"
    assert "\n" not in told, f"more than a sentence: {told}"
    return kind


def attack(files: int, seed: int, place: Path) -> Counter[str]:
    """Open so many; what came of them."""
    rng, counts = np.random.default_rng(seed), Counter[str]()
    (place / "sound").mkdir()
    sound = Sound(place / "sound")
    modules, before = set(sys.modules), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for n in range(files):
        ground = place / f"ground {n}"
        (ground / "work").mkdir(parents=True)
        try:
            counts[_one(sound, rng, ground)] += 1
        except BaseException as error:
            raise AssertionError(f"file {n} of seed {seed}: {error!r}") from error
        known = {"work", "hostile.verse", "hostile.zip", "restored"}
        assert {f.name for f in ground.iterdir()} <= known, "a file outside"
        assert {f.name for f in place.iterdir()} == {"sound", ground.name}, "a file outside"
        shutil.rmtree(ground)
    imported = {
        m for m in set(sys.modules) - modules if m.split(".")[0] in ("planted", "antigravity")
    }
    assert not imported, imported
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert grown <= MOST_BYTES, f"{grown / 2**20:.0f} MiB of memory"
    counts["MiB of memory more"] = grown // 2**20
    return counts


def _one(sound: Sound, rng: Random, ground: Path) -> str:
    if rng.random() < 0.5:
        hostile_checkpoint(sound, rng, ground / "hostile.verse")
        return f"checkpoint: {outcome(lambda: _load(ground / 'hostile.verse'))}"
    hostile_backup(sound, rng, ground / "hostile.zip", ground / "work")
    return f"backup: {outcome(lambda: _restore(ground))}"


def _load(file: Path) -> None:
    use(StreamClassifier.load(file, backbone=backbone()))


def _restore(ground: Path) -> None:
    restore(ground / "hostile.zip", ground / "restored")
    with verse.open(ground / "restored", backbone=backbone()) as classifier:
        use(classifier)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as place:
        counts = attack(options.files, options.seed, Path(place))
    for name, count in sorted(counts.items()):
        print(f"{count:7,} {name}")


if __name__ == "__main__":
    main()
