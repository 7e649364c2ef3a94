"""``hf:ORG/NAME`` or ``hf:FOLDER``: a vision model of transformers with its own preprocessing.

DINOv2, SigLIP, CLIP's image part, ConvNeXt, ViT and whatever else ``AutoModel`` knows. Weights are
read from safetensors only, and no code of a repository is ever run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from verse.backbones.base import Backbone
from verse.backbones.doors.address import Address
from verse.backbones.doors.hub import Missing, fetch_model
from verse.backbones.doors.libraries import import_library
from verse.backbones.doors.module import Setup, build_from_module, place_tokens
from verse.backbones.preprocess import Preprocess
from verse.backbones.weights import RANDOM
from verse.types import BadSetting, BadState

LARGEST_JSON = 1 << 20
CONFIG = "config.json"
PIXELS = ("preprocessor_config.json", "processor_config.json")


class VisionTower(nn.Module):
    """The image part of a model: its last map, its patches as a map, or its pooled vector."""

    def __init__(self, model: nn.Module, size: int) -> None:
        super().__init__()
        self.model = model
        self.place: nn.Module | None = None
        self.pooled = False
        with torch.no_grad():
            found = model(pixel_values=torch.zeros(1, 3, size, size))
        hidden = getattr(found, "last_hidden_state", None)
        if isinstance(hidden, Tensor) and hidden.dim() == 3:
            patch = getattr(model.config, "patch_size", None)
            side = size // patch if isinstance(patch, int) and patch > 0 else 0
            first = hidden.shape[1] - side * side if side else None
            fits = first is not None and 0 <= first < hidden.shape[1]
            self.place = place_tokens(hidden.shape[1], first if fits else None)
        usable = isinstance(hidden, Tensor) and (hidden.dim() == 4 or self.place is not None)
        if not usable:
            if not isinstance(getattr(found, "pooler_output", None), Tensor):
                raise BadSetting("the model gives neither a map nor a pooled vector for an image")
            self.pooled = True

    def forward(self, x: Tensor) -> Tensor:
        found = self.model(pixel_values=x)
        if self.pooled:
            vector: Tensor = found.pooler_output
            return vector.flatten(1)
        hidden: Tensor = found.last_hidden_state
        return hidden if self.place is None else self.place(hidden)


def build(address: Address, weights: str | Path | None, setup: Setup) -> Backbone:
    """A model from the hub or from a folder; ``weights="random"`` needs its configuration only."""
    for unknown in sorted(address.options):
        raise BadSetting(f"hf: has no option {unknown!r}")
    if weights not in (None, RANDOM):
        raise BadSetting("a model's weights lie in its folder: name it, hf:FOLDER, without weights")
    transformers = import_library("transformers")
    folder, revision, target = _find(address)
    try:
        config = _read_json(folder / CONFIG)
        pixels = next((_read_json(folder / f) for f in PIXELS if (folder / f).is_file()), {})
        _refuse_code(config, pixels)
        model = _load(transformers, folder, random=weights == RANDOM)
        prepare = _preprocess(transformers, folder)
        front = VisionTower(_image_part(model).float().eval(), prepare.size)
    except (BadState, BadSetting) as error:
        raise type(error)(f"hf:{address.target}: {error}") from error
    name = str(Address("hf", target, revision))
    return build_from_module(front, prepare, setup, name=name, revision=revision)


def _find(address: Address) -> tuple[Path, str, str]:
    """(folder, revision, the name to remember)."""
    folder = Path(address.target).expanduser()
    looks_like_a_path = address.target.startswith((".", "/", "~")) or os.sep != "/"
    if folder.is_dir():
        return folder, "", str(folder.absolute())
    if looks_like_a_path or address.target.count("/") > 1:
        raise BadSetting(f"hf: no folder at {folder}")
    try:
        folder, revision = fetch_model(address.target, address.revision)
    except Missing as error:
        raise BadSetting(
            f"hf:{address.target} cannot be fetched ({error}): download {CONFIG}, {PIXELS[0]} and "
            "model.safetensors of that repository from the Hugging Face hub into one folder, and "
            "name it: hf:FOLDER"
        ) from error
    return folder, revision, address.target


def _read_json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise BadState(f"it has no {path.name}: this is no model of transformers")
    if path.stat().st_size > LARGEST_JSON:
        raise BadState(f"its {path.name} has more than {LARGEST_JSON:,} bytes")
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise BadState(f"its {path.name} is not JSON") from error
    if not isinstance(found, dict):
        raise BadState(f"its {path.name} holds no settings")
    return found


def _refuse_code(*documents: Mapping[str, Any]) -> None:
    if any("auto_map" in document for document in documents):
        raise BadState("its configuration asks to run code of its own (auto_map): it is not loaded")


def _load(transformers: Any, folder: Path, *, random: bool) -> nn.Module:
    options: dict[str, Any] = {"trust_remote_code": False, "local_files_only": True}
    if not random and not list(folder.glob("*.safetensors")):
        pickled = [p.name for p in folder.iterdir() if p.suffix in (".bin", ".pt", ".pth", ".pkl")]
        hint = f"; {pickled[0]} is a pickle and is not opened" if pickled else ""
        raise BadState(f"it has no weights as safetensors{hint}")
    before = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    try:
        config = transformers.AutoConfig.from_pretrained(str(folder), **options)
        if random:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(0)
                return transformers.AutoModel.from_config(config, trust_remote_code=False)  # type: ignore[no-any-return]
        model, told = transformers.AutoModel.from_pretrained(
            str(folder),
            config=config,
            use_safetensors=True,
            dtype=torch.float32,
            output_loading_info=True,
            **options,
        )
    except Exception as error:  # transformers raises whatever a file made it meet
        reason = " ".join(str(error).split())[:200]
        raise BadState(f"transformers cannot load it: {reason}") from error
    finally:
        transformers.logging.set_verbosity(before)
        transformers.logging.enable_progress_bar()
    missing = [k for k in told["missing_keys"] if "pooler" not in k]  # a pooler is not always saved
    if missing or told.get("mismatched_keys"):
        wrong = sorted(missing) or sorted(map(str, told["mismatched_keys"]))
        raise BadState(f"its weights are not complete: {wrong[0]} is missing or has another shape")
    return model  # type: ignore[no-any-return]


def _image_part(model: nn.Module) -> nn.Module:
    """Of a model for images and text, the part that sees."""
    part = getattr(model, "vision_model", None) or getattr(model, "vision_tower", None)
    return part if isinstance(part, nn.Module) else model


def _preprocess(transformers: Any, folder: Path) -> Preprocess:
    """Pixels as the model's own image processor says; what has no equal here is refused."""
    try:
        processor = transformers.AutoImageProcessor.from_pretrained(
            str(folder), trust_remote_code=False, local_files_only=True, backend="pil"
        )
        said = processor.to_dict()
    except Exception as error:  # as above
        reason = " ".join(str(error).split())[:200]
        raise BadState(f"transformers cannot read its image processor: {reason}") from error
    return preprocess_of(said)


def preprocess_of(said: Mapping[str, Any]) -> Preprocess:
    """What an image processor's settings mean.

    >>> preprocess_of({"size": {"shortest_edge": 256}, "do_center_crop": True,
    ...                "crop_size": {"height": 224, "width": 224}}).crop
    0.875
    """
    size, cropped = dict(said.get("size") or {}), said.get("crop_size") or {}
    short = size.get("shortest_edge")
    square = _side(size) if "height" in size else None
    fit, crop = "crop", 1.0
    if said.get("do_center_crop") and cropped:
        side = _side(cropped)
        crop = side / (short or square or side)
    elif square is not None:
        side, fit = square, "stretch"
    elif short is not None and said.get("crop_pct"):
        side = int(short)
        crop = side / int(side / float(said["crop_pct"]))
        if side >= 384:  # as ConvNeXt does
            crop, fit = 1.0, "stretch"
    elif short is not None:
        side = int(short)
    else:
        raise BadState(f"its image processor's size {size} is not known here")
    if not 0 < crop <= 1 or said.get("do_pad"):
        raise BadState("its image processor pads or enlarges, which is not known here")
    factor = float(said.get("rescale_factor") or 1 / 255) if said.get("do_rescale", True) else 1.0
    scale = 255 * factor  # of pixels in [0, 1]
    normal = said.get("do_normalize", True)
    mean = said.get("image_mean") if normal else None
    std = said.get("image_std") if normal else None
    return Preprocess(
        size=int(side),
        crop=crop,
        mean=tuple(float(v) / scale for v in mean or (0, 0, 0)),  # type: ignore[arg-type]
        std=tuple(float(v) / scale for v in std or (1, 1, 1)),  # type: ignore[arg-type]
        interpolation=_INTERPOLATIONS.get(int(said.get("resample") or 3), "bicubic"),
        fit=fit,
    )


_INTERPOLATIONS = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic", 4: "box", 5: "hamming"}


def _side(size: Mapping[str, Any] | int) -> int:
    if isinstance(size, int):
        return size
    height, width = size.get("height"), size.get("width")
    if height != width or not isinstance(height, int):
        raise BadState(f"its images are not square ({height} × {width})")
    return height
