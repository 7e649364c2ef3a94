"""Any feature extractor in an ONNX file: what is accepted, what is refused, and the contract."""

from __future__ import annotations

import io
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

from tests.backbones.doors import end_to_end
from verse import backbones
from verse.backbones import export_features
from verse.backbones.onnx_export import export
from verse.backbones.onnx_read import LARGEST
from verse.types import BadSetting, BadState, VerseError

IMAGES = list(np.random.default_rng(0).integers(0, 256, (3, 50, 40, 3), dtype=np.uint8))
UNIT = "?mean=0,0,0&std=1,1,1"
Network = Callable[..., Path]


@pytest.fixture
def network(tmp_path: Path) -> Network:
    """Writes a small network by the onnx package's own helpers."""

    def write(
        *,
        kind: int = TensorProto.FLOAT,
        shape: tuple[object, ...] = ("n", 3, 16, 16),
        result: str = "map",
        name: str = "net.onnx",
        opset: int = 18,
    ) -> Path:
        weight = np.random.default_rng(1).standard_normal((8, 3, 3, 3)).astype(np.float32)
        nodes, x = [], "input"  # the names that ours have, too
        if kind != TensorProto.FLOAT:
            nodes.append(helper.make_node("Cast", [x], ["float"], to=TensorProto.FLOAT))
            x = "float"
        if shape[1] != 3:
            nodes.append(helper.make_node("Transpose", [x], ["turned"], perm=[0, 3, 1, 2]))
            x = "turned"
        nodes.append(helper.make_node("Conv", [x, "weight"], ["conv"], strides=[2, 2]))
        nodes.append(helper.make_node("Relu", ["conv"], ["output"]))
        outputs = [helper.make_tensor_value_info("output", TensorProto.FLOAT, None)]
        if result == "vector":
            nodes.append(helper.make_node("GlobalAveragePool", ["output"], ["pooled"]))
            nodes.append(helper.make_node("Flatten", ["pooled"], ["vector"]))
            outputs = [helper.make_tensor_value_info("vector", TensorProto.FLOAT, None)]
        elif result == "tokens":
            nodes.append(helper.make_node("Reshape", ["output", "tokens"], ["out"]))
            outputs = [helper.make_tensor_value_info("out", TensorProto.FLOAT, None)]
        elif result == "both":
            nodes.append(helper.make_node("Flatten", ["output"], ["flat"]))
            outputs.append(helper.make_tensor_value_info("flat", TensorProto.FLOAT, None))
        elif result == "channels-last":
            nodes.append(helper.make_node("Transpose", ["output"], ["out"], perm=[0, 2, 3, 1]))
            outputs = [helper.make_tensor_value_info("out", TensorProto.FLOAT, None)]
        elif result == "nan":
            nodes.append(helper.make_node("Log", ["minus"], ["log"]))
            nodes.append(helper.make_node("Add", ["output", "log"], ["out"]))
            outputs = [helper.make_tensor_value_info("out", TensorProto.FLOAT, None)]
        constants = {
            "weight": weight,
            "tokens": np.array([0, 8, -1]),
            "minus": np.array(-1, np.float32),
        }
        graph = helper.make_graph(
            nodes,
            "net",
            [helper.make_tensor_value_info("input", kind, shape)],
            outputs,
            [numpy_helper.from_array(array, key) for key, array in constants.items()],
        )
        opsets = [helper.make_opsetid("", opset)]
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), tmp_path / name)
        return tmp_path / name

    return write


def features(file: Path, options: str = "", at: str = "map") -> torch.Tensor:
    return backbones.build(f"onnx:{file}{options}", at=at, threads=1).G(IMAGES)


def test_what_we_export_comes_back_bit_for_bit(tmp_path: Path) -> None:
    ours = backbones.build(at="head", weights="random", threads=1)
    file = export_features(ours, tmp_path / "g.onnx")
    onnx.checker.check_model(onnx.load(file))
    theirs = backbones.build(f"onnx:{file}", at="map", threads=1)
    assert torch.equal(theirs.G(IMAGES), ours.G(IMAGES))
    assert theirs.G.z_shape == theirs.F.z_shape == (320, 7, 7)


def test_without_a_single_pytorch_weight(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    """Teaching and asking need ONNX Runtime and the statistics of features only."""

    def refuse(*args: object, **kwargs: object) -> None:
        pytest.fail("read PyTorch weights")

    file = network()
    for place in (
        "torch.load",
        "safetensors.torch.load_file",
        "verse.backbones.weights.read_weights",
    ):
        monkeypatch.setattr(place, refuse)
    from verse.classifier import StreamClassifier

    classifier = StreamClassifier(backbone=f"onnx:{file}{UNIT}", learner="slda", threads=1)
    red, blue = np.zeros((2, 16, 16, 3), np.uint8)
    red[..., 0] = blue[..., 2] = 200
    for t in range(6):
        classifier.learn_one(red + t, "red")
        classifier.learn_one(blue + t, "blue")
    assert classifier.predict_many([red + 9, blue + 9]) == ["red", "blue"]


def test_layouts_and_types_of_the_input_make_no_difference(network: Network) -> None:
    plain = features(network(), UNIT)
    last = features(network(shape=("n", 16, 16, 3)), UNIT)
    half = features(network(kind=TensorProto.FLOAT16), UNIT)
    raw = features(network(kind=TensorProto.UINT8))  # takes 0 … 255 as they are
    one = features(network(shape=(1, 3, 16, 16)), UNIT)
    turned = features(network(result="channels-last"), UNIT)
    torch.testing.assert_close(last, plain)
    torch.testing.assert_close(half, plain, rtol=2e-3, atol=2e-3)
    torch.testing.assert_close(raw, plain * 255, rtol=1e-4, atol=1e-3)
    torch.testing.assert_close(one, plain)
    torch.testing.assert_close(turned, plain)


def test_normalisation_is_the_files_or_the_options(tmp_path: Path) -> None:
    class Mean(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return nn.functional.adaptive_avg_pool2d(x, 1).flatten(1)

    said = '{"size": 16, "mean": [0.5, 0.5, 0.5], "std": [0.25, 0.25, 0.25]}'
    export(Mean(), np.zeros((1, 3, 16, 16), "f4"), tmp_path / "a.onnx", {"preprocess": said})
    white = [np.full((16, 16, 3), 255, np.uint8)]
    by_file = backbones.build(f"onnx:{tmp_path / 'a.onnx'}", at="fc").G(white)
    by_option = backbones.build(f"onnx:{tmp_path / 'a.onnx'}{UNIT}", at="fc").G(white)
    assert by_file.flatten().tolist() == pytest.approx([2, 2, 2])
    assert by_option.flatten().tolist() == pytest.approx([1, 1, 1])


def test_any_size_needs_an_option(network: Network) -> None:
    file = network(shape=("n", 3, "h", "w"))
    with pytest.raises(BadState, match="size=224"):
        features(file, UNIT)
    assert features(file, f"{UNIT}&size=32").shape == (3, 8, 15, 15)


@pytest.mark.parametrize("at", [None, "grid3", "fc"])
def test_the_splits(network: Network, at: str | None) -> None:
    backbone = backbones.build(f"onnx:{network()}{UNIT}", at=at)
    shape = {None: (8, 2, 2), "grid3": (8, 3, 3), "fc": (8,)}[at]
    assert backbone.G.z_shape == shape
    assert backbone.at == (at or "grid")
    with pytest.raises(BadSetting, match=r"no split point 'layer4'.*grid"):
        backbones.build(f"onnx:{network()}{UNIT}", at="layer4")


def test_a_vector_is_a_feature(network: Network) -> None:
    backbone = backbones.build(f"onnx:{network(result='vector')}{UNIT}")
    assert backbone.G.z_shape == (8,)


def test_the_key_binds_content_options_and_split_but_not_the_place(network: Network) -> None:
    def key(file: Path, options: str = UNIT, at: str = "grid") -> str:
        return backbones.build(f"onnx:{file}{options}", at=at).key

    file, copy = network(), network(name="copy.onnx")
    keys = {key(file), key(file, "?mean=1,0,0&std=1,1,1"), key(file, at="fc")}
    assert len(keys) == 3
    assert key(copy) == key(file)
    assert key(network(opset=17)) not in keys


def test_several_outputs_are_named(network: Network) -> None:
    file = network(result="both")
    with pytest.raises(BadState, match=r"output=NAME: output, flat"):
        features(file, UNIT)
    assert features(file, f"{UNIT}&output=flat", at="fc").shape == (3, 8 * 49)


REFUSED = {
    "tokens": r"\[1, 8, 49\].*neither a vector .* nor a map",
    "nan": "NaN",
}


@pytest.mark.parametrize("result", REFUSED)
def test_what_is_neither_vector_nor_map_is_refused(network: Network, result: str) -> None:
    with pytest.raises(BadState, match=REFUSED[result]):
        features(network(result=result), UNIT)


@pytest.mark.parametrize(
    ("shape", "match"),
    [
        (("n", 1, 16, 16), "no batch of RGB images"),
        (("n", 3, 16, 24), "not square"),
        ((4, 3, 16, 16), "batches of 4"),
    ],
)
def test_odd_inputs_are_refused(network: Network, shape: tuple[object, ...], match: str) -> None:
    with pytest.raises(BadState, match=match):
        features(network(shape=shape), UNIT)


def test_wrong_options_name_the_right_ones(network: Network) -> None:
    with pytest.raises(BadSetting, match=r"no option 'colour'.*size"):
        features(network(), "?colour=bgr")
    with pytest.raises(BadState, match="three numbers"):
        features(network(), "?mean=1,2&std=1,1,1")
    with pytest.raises(BadSetting, match="no ONNX file"):
        backbones.build("onnx:nowhere.onnx")
    with pytest.raises(BadSetting, match="no backbone 'onxx"):
        backbones.build("onxx:a.onnx")


# ---- hostile files ----------------------------------------------------------------------------


def _pickle() -> bytes:
    return pickle.dumps({"weight": [1, 2, 3]})


def _zip() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("model.onnx", b"x")
    return stream.getvalue()


@pytest.mark.parametrize(
    "content", [_pickle(), _zip(), b"", b"rubbish" * 99, bytes(range(256)) * 9, b"\x08\x08\x3a\x00"]
)
def test_what_is_no_model_is_refused_in_one_sentence(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.onnx").write_bytes(content)
    with pytest.raises(VerseError) as told:
        features(tmp_path / "a.onnx", UNIT)
    assert "a.onnx" in str(told.value) and "\n" not in str(told.value)


def outside(file: Path, location: str, *, offset: int = 0, length: int | None = None) -> None:
    """Move the file's weights to another place, as the onnx package would write it."""
    model = onnx.load(file)
    (weight,) = (t for t in model.graph.initializer if t.name == "weight")
    raw = weight.raw_data
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    facts = {"location": location, "offset": offset, "length": length or len(raw)}
    for key, value in facts.items():
        entry = weight.external_data.add()
        entry.key, entry.value = key, str(value)
    (file.parent / "weights.bin").write_bytes(b"\0" * offset + raw)
    file.write_bytes(model.SerializeToString())


def test_weights_beside_the_model_are_read_in(network: Network, tmp_path: Path) -> None:
    plain = features(network(), UNIT)
    file = network(name="beside.onnx")
    outside(file, "weights.bin", offset=64)
    assert torch.equal(features(file, UNIT), plain)


@pytest.mark.parametrize(
    "location", ["../secret.bin", "/etc/hostname", "", ".", "a/../../b", "link"]
)
def test_weights_outside_the_folder_are_never_opened(
    network: Network, tmp_path: Path, location: str
) -> None:
    (tmp_path.parent / "secret.bin").write_bytes(bytes(4096))
    (tmp_path / "link").symlink_to(tmp_path.parent / "secret.bin")
    file = network()
    outside(file, location)
    with pytest.raises(BadState, match="not a file in the model's folder"):
        features(file, UNIT)


def test_sizes_have_bounds(network: Network, tmp_path: Path) -> None:
    file = network()
    outside(file, "weights.bin", length=1 << 40)
    with pytest.raises(BadState, match="too short"):
        features(file, UNIT)
    with (tmp_path / "huge.onnx").open("wb") as stream:
        stream.truncate(LARGEST + 1)  # sparse: takes no room
    with pytest.raises(BadState, match="at most"):
        features(tmp_path / "huge.onnx", UNIT)
    with (tmp_path / "weights.bin").open("wb") as stream:
        stream.truncate(LARGEST + 1)
    file = network()
    outside(file, "big.bin", length=LARGEST)
    with (tmp_path / "big.bin").open("wb") as stream:
        stream.truncate(LARGEST + 1)
    with pytest.raises(BadState, match="more than"):
        features(file, UNIT)


def test_damage_anywhere_is_one_sentence(
    network: Network, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    good = network().read_bytes()
    random = np.random.default_rng(0)
    for t in range(60):
        damaged = bytearray(good)
        for at in random.integers(0, len(good), 3):
            damaged[at] = random.integers(256)
        if t % 3 == 0:
            damaged = damaged[: random.integers(len(good))]
        (tmp_path / "d.onnx").write_bytes(bytes(damaged))
        told = ""
        try:
            features(tmp_path / "d.onnx", UNIT)
        except VerseError as error:
            told = str(error)
        assert "\n" not in told
    assert capfd.readouterr() == ("", "")  # ONNX Runtime would tell it, too


def test_from_teaching_to_serving(network: Network, tmp_path: Path, root: Path) -> None:
    end_to_end.check(f"onnx:{network()}{UNIT}", tmp_path, root)
