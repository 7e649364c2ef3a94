"""``timm:NAME``: any model of timm by its own name, configuration and weights.

``timm:resnet18.a1_in1k``, ``timm:vit_small_patch14_dinov2?size=224``; ``@REVISION`` behind the name
takes another revision of its weights than the newest.
"""

from __future__ import annotations

import difflib
import inspect
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from verse.backbones.base import Backbone
from verse.backbones.doors.address import Address
from verse.backbones.doors.hub import Missing, fetch_file
from verse.backbones.doors.libraries import import_library
from verse.backbones.doors.module import Setup, build_from_module, place_tokens
from verse.backbones.preprocess import INTERPOLATIONS, Preprocess
from verse.backbones.weights import RANDOM, read_weights
from verse.paths import cache_directory
from verse.types import BadSetting, BadState

FILE = "model.safetensors"


class LastMap(nn.Module):
    """timm's last feature map as [n, c, h, w]; a vector where a model has no map."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.options: dict[str, Any] = {}
        intermediates = getattr(model, "forward_intermediates", None)
        if intermediates is not None:
            known = inspect.signature(intermediates).parameters
            wanted = {"indices": 1, "norm": True, "output_fmt": "NCHW", "intermediates_only": True}
            self.options = {name: value for name, value in wanted.items() if name in known}

    def forward(self, x: Tensor) -> Tensor:
        if self.options:
            found: Tensor = self.model.forward_intermediates(x, **self.options)[-1]  # type: ignore[operator]
            return found
        found = self.model.forward_features(x)  # type: ignore[operator]
        if found.dim() == 3:
            first = getattr(self.model, "num_prefix_tokens", None)
            place = place_tokens(found.shape[1], first)
            found = found.mean(1) if place is None else place(found)
        elif found.dim() == 4 and found.shape[1] == found.shape[2] != found.shape[3]:
            found = found.permute(0, 3, 1, 2)
        return found


def build(address: Address, weights: str | Path | None, setup: Setup) -> Backbone:
    """A timm model with its own weights, yours, or random ones."""
    timm = import_library("timm")
    name = address.target
    for unknown in sorted(set(address.options) - {"size"}):
        raise BadSetting(f"timm: has no option {unknown!r}; there is size")
    _check_name(timm, name)
    size = _size(address)
    state, revision = None, ""
    if weights != RANDOM:
        state, revision = _weights(timm, address, weights)
    model = _create(timm, name, state, size)
    prepare = _preprocess(timm, model, name, size)
    exact = Address("timm", name, revision, address.options)
    return build_from_module(LastMap(model), prepare, setup, name=str(exact), revision=revision)


def _check_name(timm: Any, name: str) -> None:
    known = [*timm.list_models(), *timm.list_pretrained()]
    if name in known:
        return
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    hint = f": did you mean {', '.join(near)}?" if near else ""
    raise BadSetting(f"timm {timm.__version__} has no model {name!r}{hint}")


def _size(address: Address) -> int | None:
    text = address.options.get("size")
    if text is None:
        return None
    if not text.isdecimal() or not 16 <= int(text) <= 4096:
        raise BadSetting(f"size is a number of pixels from 16 to 4096, not {text!r}")
    return int(text)


def _weights(
    timm: Any, address: Address, weights: str | Path | None
) -> tuple[dict[str, Tensor], str]:
    """(tensors, revision): a file of yours, the cache directory's, or the hub's."""
    name = address.target
    if weights is not None:
        return read_weights(Path(weights)), ""
    kept = cache_directory() / "timm" / f"{name}.safetensors"
    if kept.is_file():
        return read_weights(kept), ""
    published = timm.models.get_pretrained_cfg(name)
    repository = getattr(published, "hf_hub_id", None)
    if not repository:
        raise BadSetting(f"timm has no published weights for {name}: give weights=PATH")
    try:
        path, revision = fetch_file(repository, FILE, address.revision)
    except Missing as error:
        raise BadSetting(
            f"no weights for timm:{name} ({error}): download {FILE} of the repository {repository} "
            f"from the Hugging Face hub, and give weights=PATH or put it at {kept}"
        ) from error
    return read_weights(path), revision


def _create(timm: Any, name: str, state: dict[str, Tensor] | None, size: int | None) -> nn.Module:
    """The model without its classifier; every weight must be there."""
    options: dict[str, Any] = {"num_classes": 0}
    if state is not None:
        classifier = getattr(timm.models.get_pretrained_cfg(name), "classifier", None) or ()
        heads = (classifier,) if isinstance(classifier, str) else tuple(classifier)
        kept = {k: v for k, v in state.items() if k.rpartition(".")[0] not in heads}
        # no classifier on either side: then timm loads strictly
        overlay = {"state_dict": kept, "num_classes": 0, "label_offset": 0, "custom_load": False}
        options |= {"pretrained": True, "pretrained_cfg_overlay": overlay}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        try:
            if size is not None:
                try:
                    return timm.create_model(name, img_size=size, **options)  # type: ignore[no-any-return]
                except TypeError:
                    pass  # a convolutional network takes any size without being told
            return timm.create_model(name, **options)  # type: ignore[no-any-return]
        except (RuntimeError, KeyError, AssertionError, ValueError) as error:
            reason = " ".join(str(error).split())[:300]
            raise BadState(f"the weights do not fit timm:{name}: {reason}") from error


def _preprocess(timm: Any, model: nn.Module, name: str, size: int | None) -> Preprocess:
    """Pixels as the model's own configuration says."""
    data = timm.data.resolve_model_data_config(model)
    channels, height, width = data["input_size"]
    if channels != 3 or (height != width and size is None):
        raise BadSetting(f"timm:{name} takes {data['input_size']}: only square RGB images are made")
    if data.get("crop_mode", "center") not in ("center", "squash"):
        raise BadSetting(f"timm:{name} crops by {data['crop_mode']!r}, which is not known here")
    interpolation = data["interpolation"]
    return Preprocess(
        size=height if size is None else size,
        crop=float(data["crop_pct"]),
        mean=tuple(float(v) for v in data["mean"]),  # type: ignore[arg-type]
        std=tuple(float(v) for v in data["std"]),  # type: ignore[arg-type]
        interpolation=interpolation if interpolation in INTERPOLATIONS else "bicubic",
        fit="stretch" if data.get("crop_mode") == "squash" else "crop",
    )
