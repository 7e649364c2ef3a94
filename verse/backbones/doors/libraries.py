"""Importing timm and transformers, which bring torchvision along or look for it."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import Any

import torch

from verse.types import MissingExtra

_kept: list[torch.library.Library] = []  # operators live as long as their library does


def import_library(name: str) -> Any:
    """timm, transformers or huggingface_hub; without it, the error names the extra."""
    extra = "timm" if name == "timm" else "transformers"
    if importlib.util.find_spec(name) is None:
        raise MissingExtra(name, extra)
    import_torchvision()
    return importlib.import_module(name)


def import_torchvision() -> None:
    """Import torchvision, if it is there, also where its compiled part does not fit this torch.

    A build for another torch (with CUDA, for example) cannot load its compiled operators, and then
    fails to import because two of them do not exist. Nothing here uses them: they are declared.
    """
    if "torchvision" in sys.modules or importlib.util.find_spec("torchvision") is None:
        return
    try:
        importlib.import_module("torchvision")
    except RuntimeError as error:
        if "torchvision::nms" not in str(error):
            raise
        for module in [m for m in sys.modules if m.partition(".")[0] == "torchvision"]:
            del sys.modules[module]
        library = torch.library.Library("torchvision", "DEF")  # type: ignore[no-untyped-call]
        arguments = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
        for operator in ("nms", "qnms"):
            library.define(f"{operator}{arguments}")  # type: ignore[no-untyped-call]
        _kept.append(library)
        importlib.import_module("torchvision")
