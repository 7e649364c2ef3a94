"""Labels of ImageNet's flat validation folder, from whichever of the usual files is there."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from verse.extras import OptionalImport
from verse.types import BadData

KIT = "ILSVRC2012_devkit_t12"
KAGGLE = "LOC_val_solution.csv"
LIST = "imagenet_2012_validation_synset_labels.txt"


def flat_labels(root: Path) -> dict[str, str]:
    """Image name without ending → WordNet id."""
    if (root / KAGGLE).is_file():
        with (root / KAGGLE).open(newline="", encoding="utf-8") as file:
            return {
                row["ImageId"]: row["PredictionString"].split()[0] for row in csv.DictReader(file)
            }
    if (root / LIST).is_file():
        return _number((root / LIST).read_text("utf-8").split())
    if (root / KIT / "data").is_dir():
        return _number(_from_kit(root / KIT / "data"))
    raise BadData(
        f"{root / 'val'} is flat, so its labels are needed beside it: {KIT}/ from "
        f"ILSVRC2012_devkit_t12.tar.gz, {KAGGLE}, or {LIST}; or sort the images into "
        "val/<WordNet id>/"
    )


def _number(wnids: list[str]) -> dict[str, str]:
    return {f"ILSVRC2012_val_{k:08d}": wnid for k, wnid in enumerate(wnids, start=1)}


def _from_kit(data: Path) -> list[str]:
    """The kit numbers classes by its own order, which only its MATLAB file translates."""
    with OptionalImport():
        from scipy.io import loadmat
    synsets: Any = loadmat(data / "meta.mat", squeeze_me=True)["synsets"]
    wnid = {int(row["ILSVRC2012_ID"]): str(row["WNID"]) for row in synsets}
    numbers = (data / "ILSVRC2012_validation_ground_truth.txt").read_text("ascii").split()
    return [wnid[int(number)] for number in numbers]
