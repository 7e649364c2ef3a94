"""A classifier as one ONNX file: G, the network that answers, and what its outputs are called.

Input ``input``: prepared images [n, size, size, 3], uint8 RGB (features for a backbone without G).
Outputs ``probabilities``: float32 [n, classes], and ``novelty``: float32 [n], above 1 for something
that fits nothing taught. The file's metadata hold ``labels`` (a JSON list, one for each column),
``preprocess`` (JSON: resize the centre square, ``crop`` of the short side, to ``size``),
``refused`` (the share of known frames that may be called unknown), ``backbone``, ``at``, ``key``,
``learner``, ``samples`` and ``verse`` (the version).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import nn

from verse import __version__
from verse.backbones import Backbone, Preprocess
from verse.backbones.extractor import FrozenNetwork
from verse.backbones.identity import IdentityExtractor
from verse.backbones.onnx_export import describe_export, write_model
from verse.backbones.onnx_graph import convert_module
from verse.backbones.onnx_join import join_models
from verse.backbones.onnx_layers import Unconvertible
from verse.backbones.outputs import Both, Columns
from verse.types import BadSetting, BadState, Label

OUTPUTS = ("probabilities", "novelty")


def write_onnx(
    path: str | Path,
    backbone: Backbone,
    network: nn.Module,
    novelty: nn.Module,
    outputs: Sequence[int],
    labels: Sequence[Label],
    facts: Mapping[str, object],
) -> Path:
    """Write softmax ∘ ``network`` ∘ G, and ``novelty`` ∘ G, to ``path``, all or nothing.

    ``network`` maps features to scores; of these the columns ``outputs`` belong to ``labels``.
    ``novelty`` maps features to one value each.

    >>> import tempfile
    >>> from verse.backbones import Head, Plastic, identity
    >>> from verse.backbones.outputs import Smallest
    >>> head = Head(3)
    >>> head.n = 2
    >>> network = Plastic(nn.Identity(), head, z_shape=(3,))
    >>> folder = Path(tempfile.mkdtemp())
    >>> novelty = nn.Sequential(nn.Identity(), Smallest())
    >>> labels = ["mug", "cup"]
    >>> write_onnx(folder / "model.onnx", identity(3), network, novelty, [0, 1], labels, {}).name
    'model.onnx'
    """
    if not labels:
        raise BadSetting("nothing was learned yet: teach it a class before exporting it")
    metadata = {
        "labels": json.dumps(list(labels), ensure_ascii=False),
        "preprocess": json.dumps(_preprocess(backbone)),
        "backbone": backbone.name,
        "at": backbone.at,
        "key": backbone.key,
        "verse": __version__,
        **{name: str(value) for name, value in facts.items()},
    }
    tail = Both(nn.Sequential(network, Columns(outputs), nn.Softmax(1)), novelty)
    try:
        return write_model(_whole(backbone, tail, metadata), path)
    except OSError as error:
        raise BadSetting(f"cannot write {path}: {error.strerror}") from error
    except (Unconvertible, BadState) as error:
        raise BadSetting(f"{backbone.name} cannot be exported: {error}") from error


def _whole(backbone: Backbone, tail: nn.Module, metadata: Mapping[str, str]) -> bytes:
    """G and what stands behind it as one ONNX model."""
    G = backbone.G
    if isinstance(G, IdentityExtractor):
        example = torch.zeros(1, *G.z_shape)
        return convert_module(tail, example, metadata=metadata, output=OUTPUTS)
    if isinstance(G, FrozenNetwork):
        try:
            module = nn.Sequential(G.network, tail)
            return convert_module(
                module, torch.tensor(G.example), metadata=metadata, output=OUTPUTS
            )
        except Unconvertible:
            if G.model is None:
                raise
    model = getattr(G, "model", None)
    if not isinstance(model, bytes):
        raise BadSetting(f"{backbone.name} has a G of its own kind, which cannot be exported")
    behind = convert_module(tail, torch.zeros(1, *G.z_shape), output=OUTPUTS)
    return join_models([model, behind], output_name=OUTPUTS, metadata=metadata)


def _preprocess(backbone: Backbone) -> dict[str, object]:
    """What must happen to an image before it goes into the model."""
    G = backbone.G
    if isinstance(G, IdentityExtractor):
        return {"kind": "feature"}
    prepare = getattr(G, "prepare", None)
    return describe_export(prepare) if isinstance(prepare, Preprocess) else {"kind": "own"}
