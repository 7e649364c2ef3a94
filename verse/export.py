"""A classifier as one ONNX file: G, the network that answers, and what its outputs are called.

Input ``input``: prepared images [n, size, size, 3], uint8 RGB (features for a backbone without G).
Output ``probabilities``: float32 [n, classes]. The file's metadata hold ``labels`` (a JSON list,
one for each column), ``preprocess`` (JSON: resize the centre square, ``crop`` of the short side,
to ``size``), ``backbone``, ``at``, ``key``, ``learner``, ``samples`` and ``verse`` (the version).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from torch import nn

from verse import __version__
from verse.backbones import Backbone, Preprocess
from verse.backbones.extractor import FrozenNetwork
from verse.backbones.identity import Features
from verse.backbones.onnx_export import export
from verse.backbones.outputs import Columns
from verse.types import BadSetting, Label

OUTPUT = "probabilities"


def write(
    path: str | Path,
    backbone: Backbone,
    network: nn.Module,
    outputs: Sequence[int],
    labels: Sequence[Label],
    facts: Mapping[str, object],
) -> Path:
    """Write softmax ∘ ``network`` ∘ G to ``path``, all or nothing.

    ``network`` maps features to scores; of these the columns ``outputs`` belong to ``labels``.

    >>> import tempfile
    >>> from verse.backbones import Head, Plastic, identity
    >>> head = Head(3)
    >>> head.n = 2
    >>> network = Plastic(nn.Identity(), head, z_shape=(3,))
    >>> folder = Path(tempfile.mkdtemp())
    >>> write(folder / "model.onnx", identity(3), network, [0, 1], ["mug", "cup"], {}).name
    'model.onnx'
    """
    if not labels:
        raise BadSetting("nothing was learned yet: teach it a class before exporting it")
    front, example, preprocess = _front(backbone)
    metadata = {
        "labels": json.dumps(list(labels), ensure_ascii=False),
        "preprocess": json.dumps(preprocess),
        "backbone": backbone.name,
        "at": backbone.at,
        "key": backbone.key,
        "verse": __version__,
        **{name: str(value) for name, value in facts.items()},
    }
    module = nn.Sequential(front, network, Columns(outputs), nn.Softmax(1))
    try:
        return export(module, example, path, metadata, output=OUTPUT)
    except OSError as error:
        raise BadSetting(f"cannot write {path}: {error.strerror}") from error


def _front(backbone: Backbone) -> tuple[nn.Module, npt.NDArray[np.generic], dict[str, object]]:
    """(G as a module, one batch of its input, what must happen to an image before it)."""
    G = backbone.G
    if isinstance(G, Features):
        return nn.Identity(), np.zeros((1, *G.z_shape), np.float32), {"kind": "feature"}
    if isinstance(G, FrozenNetwork):
        steps: dict[str, object] = {"kind": "own"}
        if isinstance(G.prepare, Preprocess):
            steps = {"kind": "centre-square", "size": G.prepare.size, "crop": G.prepare.crop}
        return G.network, G.example, steps
    raise BadSetting(f"{backbone.name} has a G of its own kind, which cannot be exported")
