"""A network as an ONNX file for other programs, with its labels inside."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from verse.backbones.onnx_graph import convert


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
    path = Path(path)
    model = convert(module, torch.tensor(example), metadata=metadata, output=output)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(model)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    finally:
        Path(name).unlink(missing_ok=True)
    return path
