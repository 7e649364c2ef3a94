"""A network as an ONNX file for other programs, with its labels inside."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from verse.backbones.base import Backbone
from verse.backbones.onnx_graph import convert_module
from verse.backbones.onnx_join import join_models
from verse.backbones.preprocess import Preprocess
from verse.paths import write_atomic
from verse.types import BadSetting


def export(
    module: nn.Module,
    example: npt.NDArray[np.generic],
    path: str | Path,
    metadata: Mapping[str, str],
    *,
    output: str = "output",
) -> Path:
    """Write ``module`` (input "input" [n, …], any n) to ``path``, all or nothing.

    ``example`` is one batch of inputs, such as ``G.preprocess(image)[None]``; ``metadata`` ends up
    in the file's properties (labels as JSON, the backbone's key, …). For a whole classifier the
    module is ``nn.Sequential(G.network, F.body, F.head, nn.Softmax(1))``.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = export(nn.ReLU(), np.zeros((1, 3), "f4"), f"{folder}/a.onnx", {"labels": "[]"})
    ...     file.name
    'a.onnx'
    """
    return write_model(
        convert_module(module, torch.tensor(example), metadata=metadata, output=output), path
    )


def export_features(backbone: Backbone, path: str | Path) -> Path:
    """Write G to an ONNX file that says how images get in: ``backbone="onnx:FILE"`` reads it.

    The input is uint8 [n, size, size, 3]; normalisation and grid are inside. The new backbone's
    split is "map" where G ends in a grid or a map, and "fc" where it ends in a vector.

    >>> import tempfile
    >>> from verse.backbones import build
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = export_features(build(weights="random"), f"{folder}/features.onnx")
    ...     build(f"onnx:{file}", at="map").G.z_shape
    (320, 2, 2)
    """
    G = backbone.G
    model, prepare = getattr(G, "model", None), getattr(G, "prepare", None)
    if not isinstance(model, bytes) or not isinstance(prepare, Preprocess):
        raise BadSetting(f"{backbone.name} has a G that cannot be written as ONNX")
    metadata = {
        "preprocess": json.dumps(describe_export(prepare)),
        "backbone": backbone.name,
        "at": backbone.at,
        "key": backbone.key,
    }
    return write_model(join_models([model], output_name="features", metadata=metadata), path)


def describe_export(prepare: Preprocess) -> dict[str, object]:
    """How an image becomes the input of a model, as a file's property ``preprocess`` says it."""
    return {
        "kind": "centre-square" if prepare.fit == "crop" else "stretch",
        "size": prepare.size,
        "crop": prepare.crop,
        "fit": prepare.fit,
        "interpolation": prepare.interpolation,
        "colour": "RGB",
        "mean": list(prepare.mean),
        "std": list(prepare.std),
        "normalised": "inside",  # the model takes bytes: mean and std are for information
    }


def write_model(model: bytes, path: str | Path) -> Path:
    """Write an ONNX model to ``path``, all or nothing."""
    write_atomic(Path(path), model)
    return Path(path)
