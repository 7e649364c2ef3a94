"""``onnx:FILE``: any feature extractor in an ONNX file, run by ONNX Runtime alone.

The input is one batch of images, [n, 3, h, w] or [n, h, w, 3], float32, float16 or uint8; the
output a vector or a map for each image. What the file cannot say goes behind a question mark:
``onnx:my.onnx?size=224&mean=0.485,0.456,0.406&std=0.229,0.224,0.225``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from verse.backbones import onnx_wire as wire
from verse.backbones.base import Backbone, plastic
from verse.backbones.doors.address import Address
from verse.backbones.doors.module import Setup
from verse.backbones.doors.splits import choose_split
from verse.backbones.engine import start_session
from verse.backbones.onnx_graph import convert_module
from verse.backbones.onnx_join import graph_of, join_models, keep_output
from verse.backbones.onnx_layers import Graph
from verse.backbones.onnx_read import read_fields, read_model
from verse.backbones.preprocess import INTERPOLATIONS, Preprocess
from verse.types import BadSetting, BadState

OPTIONS = ("size", "crop", "fit", "interpolation", "mean", "std", "output")
LARGEST_FEATURE = 1 << 22
_KINDS = {"tensor(float)": "float32", "tensor(float16)": "float16", "tensor(uint8)": "uint8"}


@dataclass(frozen=True)
class Shape:
    """What a model takes.

    Parameters
    ----------
    dtype
        Of a pixel: "float32", "float16" or "uint8".
    channels_last
        [n, h, w, 3] instead of [n, 3, h, w].
    size
        Pixels of the square input; None where the file leaves it open.
    single
        One image at a time: the file allows no other batch.
    """

    dtype: str
    channels_last: bool
    size: int | None
    single: bool

    @classmethod
    def of(cls, value: Any) -> Shape:
        """Of a session's input; refused with a reason if no image fits it."""
        shape = list(value.shape)
        if value.type not in _KINDS:
            raise BadState(f"its input is a {value.type}, not an image of floats or bytes")
        if len(shape) != 4 or 3 not in (shape[1], shape[3]):
            raise BadState(
                f"its input {shape} is no batch of RGB images [n, 3, h, w] or [n, h, w, 3]"
            )
        last = shape[1] != 3
        sides = {side for side in (shape[1:3] if last else shape[2:]) if isinstance(side, int)}
        if len(sides) > 1:
            raise BadState(f"its input {shape} is not square")
        if isinstance(shape[0], int) and shape[0] != 1:
            raise BadState(f"it takes batches of {shape[0]} images only: export it for any number")
        size = next(iter(sides), None)
        return cls(_KINDS[value.type], last, size, isinstance(shape[0], int))


class OnnxExtractor:
    """G from a file: pixels in, features out, by ONNX Runtime.

    ``model`` is the whole of it as one ONNX model: normalisation, the file's graph, the grid.
    """

    engine = "onnxruntime"

    def __init__(
        self, model: bytes, prepare: Preprocess, *, single: bool, threads: int | None
    ) -> None:
        self.model, self.prepare, self.single = model, prepare, single
        self._threads = torch.get_num_threads() if threads is None else threads
        if self._threads < 1:
            raise BadSetting(f"threads must be at least 1, not {self._threads}")
        self._session = start_session(model, self._threads)
        self.z_shape = tuple(self.run(np.stack([self.preprocess(_probe())])).shape[1:])

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != "_session"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """A session has no copy: it is started again."""
        self.__dict__.update(state)
        self._session = start_session(self.model, self._threads)

    @property
    def threads(self) -> int:
        """Threads used for one call; assign to change it."""
        return self._threads

    @threads.setter
    def threads(self, n: int) -> None:
        if n < 1:
            raise BadSetting(f"threads must be at least 1, not {n}")
        if n != self._threads:
            self._session, self._threads = start_session(self.model, n), n

    def preprocess(self, image: object) -> npt.NDArray[np.generic]:
        """One image in any form → uint8 [size, size, 3]."""
        return self.prepare(image)

    def run(self, inputs: npt.NDArray[np.generic]) -> Tensor:
        """Prepared inputs [n, size, size, 3] → float32 z [n, *z_shape]."""
        inputs = np.ascontiguousarray(inputs)
        batches = [inputs[i : i + 1] for i in range(len(inputs))] if self.single else [inputs]
        found = [self._session.run(None, {"input": batch})[0] for batch in batches]
        return torch.from_numpy(np.concatenate(found))

    def __call__(self, images: Sequence[object]) -> Tensor:
        if len(images) == 0:
            return torch.empty(0, *self.z_shape)
        return self.run(np.stack([self.preprocess(image) for image in images]))


def build(address: Address, setup: Setup) -> Backbone:
    """The backbone in a file; refused with a reason if it is none."""
    if setup.engine == "torch":
        raise BadSetting("an ONNX file is run by ONNX Runtime: leave engine out")
    path = Path(address.target).expanduser().absolute()
    if not path.is_file():
        raise BadSetting(f"no ONNX file at {path}")
    for unknown in sorted(set(address.options) - set(OPTIONS)):
        raise BadSetting(f"onnx: has no option {unknown!r}; there are {', '.join(OPTIONS)}")
    user = read_model(path)
    name = str(Address("onnx", str(path), options=address.options))
    output = address.options.get("output")
    digest = hashlib.sha256(user).hexdigest()
    try:
        user = _choose_output(user, output)
        shape = Shape.of(_session(user).get_inputs()[0])
        prepare = _preprocess(shape, _metadata(user), address.options)
        parts = [_pixels(shape, prepare), user, _floats()]
        map_ = _try(parts, prepare)
        at, grid, body = choose_split(setup.at, map_, name)
        if grid is not None:
            parts.append(convert_module(grid, torch.zeros(1, *map_)))
        facts = ("onnx", at, prepare, shape, output, digest)
        G = OnnxExtractor(join_models(parts), prepare, single=shape.single, threads=setup.threads)
    except BadState as error:
        raise BadState(f"{path} cannot be a backbone: {error}") from error
    F = plastic(
        body, torch.zeros(1, *G.z_shape), precision=setup.precision, batchnorm=setup.batchnorm
    )
    return Backbone(name, at, G, F, hashlib.sha256(repr(facts).encode()).hexdigest())


def _session(model: bytes) -> Any:
    try:
        return start_session(model, 1)
    except Exception as error:  # ONNX Runtime has a kind of error for each way a file can be wrong
        raise BadState(f"ONNX Runtime does not run it ({_first_line(error)})") from error


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:200]


def _choose_output(user: bytes, wanted: str | None) -> bytes:
    """The model with the one output that is asked for."""
    names = [
        bytes(dict(read_fields(v))[1]).decode()
        for n, v in read_fields(graph_of(read_fields(user)))
        if n == 12 and isinstance(v, bytes)
    ]
    if wanted is None and len(names) == 1:
        return user
    if wanted not in names:
        raise BadState(f"choose one of its outputs, ?output=NAME: {', '.join(names)}")
    return keep_output(user, wanted)


def _metadata(user: bytes) -> dict[str, Any]:
    """What ``preprocess`` among the file's properties says; {} if there is none."""
    for number, value in read_fields(user):
        if number == 14 and isinstance(value, bytes):
            pair = dict(read_fields(value))
            if pair.get(1) == b"preprocess":
                try:
                    found = json.loads(bytes(pair.get(2, b"")))
                except (ValueError, TypeError, RecursionError) as error:
                    raise BadState("its property 'preprocess' is no JSON") from error
                return found if isinstance(found, dict) else {}
    return {}


def _preprocess(shape: Shape, said: Mapping[str, Any], options: Mapping[str, str]) -> Preprocess:
    """How an image becomes its input: by options, else by the file, else refused."""
    facts: dict[str, Any] = {**said, **options}
    size = shape.size if shape.size is not None else facts.get("size")
    if size is None:
        raise BadState("it takes any size and does not say which: add ?size=224 or the like")
    if shape.dtype != "uint8" and not {"mean", "std"} <= set(facts):
        raise BadState(
            "it does not say how its pixels are normalised: add ?mean=0.485,0.456,0.406&"
            "std=0.229,0.224,0.225 or what it was trained with (mean=0,0,0&std=1,1,1 for [0, 1])"
        )
    try:
        mean, std = (_three(facts.get(key, default)) for key, default in (("mean", 0), ("std", 1)))
        fit, interpolation = facts.get("fit", "crop"), facts.get("interpolation", "bicubic")
        found = Preprocess(int(size), float(facts.get("crop", 1.0)), mean, std, interpolation, fit)
    except (TypeError, ValueError) as error:
        raise BadState(f"its preprocessing cannot be read: {error}") from error
    if not (8 <= found.size <= 4096 and 0 < found.crop <= 1 and 0 not in found.std):
        raise BadState(f"its preprocessing is not sensible: {found}")
    if interpolation not in INTERPOLATIONS or fit not in ("crop", "stretch"):
        raise BadState(f"its preprocessing is not known: {interpolation!r}, {fit!r}")
    return found


def _three(value: object) -> tuple[float, float, float]:
    values = value.split(",") if isinstance(value, str) else value
    if isinstance(values, int | float):
        values = [values] * 3
    if not isinstance(values, list) or len(values) != 3:
        raise ValueError(f"three numbers are needed, not {value!r}")
    red, green, blue = (float(v) for v in values)
    return red, green, blue


def _pixels(shape: Shape, prepare: Preprocess) -> bytes:
    """uint8 [n, size, size, 3] → what the file takes."""
    g, x = Graph(), "input"
    if shape.dtype != "uint8":
        scale = 1 / (255 * np.array(prepare.std))
        shift = -np.array(prepare.mean) / np.array(prepare.std)
        x = g.put("Mul", [g.put("Cast", [x], to=1), g.constant(scale.astype(np.float32))])
        x = g.put("Add", [x, g.constant(shift.astype(np.float32))])
        x = g.put("Cast", [x], to=wire.TYPES[shape.dtype])
    if not shape.channels_last:
        x = g.put("Transpose", [x], perm=[0, 3, 1, 2])
    g.nodes.append(wire.node("Identity", [x], "output"))
    n = 1 if shape.single else "n"
    side = prepare.size
    sizes = [n, side, side, 3] if shape.channels_last else [n, 3, side, side]
    return wire.model(
        g.nodes,
        g.constants,
        [wire.value("input", "uint8", [n, side, side, 3])],
        [wire.value("output", shape.dtype, sizes)],
        {},
    )


def _floats() -> bytes:
    """The file's result as it is, in float32."""
    nodes = [wire.node("Cast", ["input"], "output", {"to": wire.TYPES["float32"]})]
    values = [wire.value(name, "float32", ["n"]) for name in ("input", "output")]
    return wire.model(nodes, [], values[:1], values[1:], {})


def _try(parts: list[bytes], prepare: Preprocess) -> tuple[int, ...]:
    """Run it once and look: the shape of its feature, channels first (its map is turned if not)."""
    session = _session(join_models(parts))
    pixels = prepare(_probe())[None]
    try:
        z = session.run(None, {"input": pixels})[0]
    except Exception as error:  # as above
        raise BadState(f"ONNX Runtime does not run it ({_first_line(error)})") from error
    found = z.shape[1:]
    if len(z) != 1 or len(found) not in (1, 3):
        raise BadState(
            f"for one image it gives {list(z.shape)}, which is neither a vector [1, d] nor a map "
            "[1, c, h, w]"
        )
    if z.size > LARGEST_FEATURE or z.size < 2:
        raise BadState(f"a feature of {z.size:,} values is too large or too small")
    if not np.isfinite(z).all():
        raise BadState("it gives NaN or infinite values for an ordinary image")
    # a square image gives a square map: where the two equal sides stand tells the layout
    if len(found) == 3 and found[0] == found[1] != found[2]:
        parts.append(_make_transpose())
        return found[2], found[0], found[1]
    return tuple(found)


def _make_transpose() -> bytes:
    """[n, h, w, c] → [n, c, h, w]."""
    nodes = [wire.node("Transpose", ["input"], "output", {"perm": [0, 3, 1, 2]})]
    values = [wire.value(name, "float32", ["n", "a", "b", "c"]) for name in ("input", "output")]
    return wire.model(nodes, [], values[:1], values[1:], {})


def _probe() -> npt.NDArray[np.uint8]:
    """An image without symmetry, the same everywhere."""
    return (np.arange(64 * 64 * 3).reshape(64, 64, 3) * 37 % 251).astype(np.uint8)
