"""PyTorch's own way to ONNX, for networks with more than the converter of this package knows.

It needs the packages onnx and onnxscript and takes 10 to 90 seconds a network, so the result is
kept in the user's cache.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import logging
import sys
import warnings
from pathlib import Path

import torch
from torch import Tensor, nn

from verse.backbones.base import content_key
from verse.backbones.onnx_layers import Unconvertible
from verse.backbones.onnx_read import LARGEST, read_model
from verse.paths import cache_directory, write_atomic
from verse.types import BadState


def export_with_torch(network: nn.Module, example: Tensor) -> bytes:
    """An ONNX model with input "input" [n, …] and one output, from the cache or made now."""
    facts = [str(network), example.dtype, tuple(example.shape[1:]), torch.__version__]
    file = cache_directory() / "onnx" / f"{content_key(facts, [network])}.onnx"
    if file.is_file():
        with contextlib.suppress(BadState):  # a damaged one is made again
            return read_model(file)
    for package in ("onnx", "onnxscript"):
        if importlib.util.find_spec(package) is None:
            raise Unconvertible(f"a network whose export needs the package {package}")
    sys.stderr.write("preparing the network for ONNX Runtime (once; up to a minute or two)\n")
    model = _export(network, example)
    with contextlib.suppress(OSError):  # a read-only home: make it again next time
        _keep(file, model)
    return model


def _export(network: nn.Module, example: Tensor) -> bytes:
    two = torch.cat([example, example])  # a batch of one would be taken as a constant
    level = logging.getLogger().level
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            program = torch.onnx.export(
                network.eval(),
                (two,),
                dynamo=True,
                dynamic_shapes=({0: torch.export.Dim("n")},),
                input_names=["input"],
                output_names=["output"],
                verbose=False,
            )
            model = program.model_proto if program is not None else None
            data: bytes = model.SerializeToString() if model is not None else b""
    except Exception as error:  # whatever the exporter meets in somebody's code
        reason = str(error).strip().partition("\n")[0][:200]
        raise Unconvertible(f"a network that PyTorch cannot export ({reason})") from error
    finally:
        logging.disable(logging.NOTSET)
        logging.getLogger().setLevel(level)
    if not data or len(data) > LARGEST:
        raise Unconvertible("a network too large for one ONNX file")
    return data


def _keep(file: Path, model: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(file, model)
