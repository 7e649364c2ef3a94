from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from verse import backbones
from verse.backbones.engine import OnnxEngine, TorchEngine, start_engine
from verse.backbones.onnx_export import export
from verse.backbones.onnx_graph import convert_module
from verse.backbones.onnx_layers import Unconvertible
from verse.network.plastic import Head
from verse.types import BadSetting

INPUT = np.random.default_rng(0).integers(0, 256, (5, 224, 224, 3), dtype=np.uint8)


@pytest.mark.parametrize(("name", "at"), [("efficientnet-lite0", "head"), ("resnet18", "layer4.1")])
def test_engines_agree_whatever_the_batch_and_threads(name: str, at: str) -> None:
    fast = backbones.build(name, at=at, weights="random", threads=1)
    plain = backbones.build(name, at=at, weights="random", engine="torch", threads=1)
    assert (fast.G.engine, plain.G.engine) == ("onnxruntime", "torch")
    assert fast.key == plain.key
    together = fast.G.run(INPUT)
    scale = float(together.abs().max())
    torch.testing.assert_close(together / scale, plain.G.run(INPUT) / scale, rtol=1e-5, atol=1e-5)
    for i, one in enumerate(INPUT[:3]):
        for G in (fast.G, plain.G):
            alone = G.run(one[None])[0] / scale
            torch.testing.assert_close(alone, together[i] / scale, rtol=1e-5, atol=1e-5)
    fast.G.threads = 2
    assert fast.G.threads == 2
    with pytest.raises(BadSetting, match="at least 1"):
        fast.G.threads = 0
    torch.testing.assert_close(fast.G.run(INPUT) / scale, together / scale, rtol=1e-5, atol=1e-5)


def test_features_can_be_learned_from_and_are_aligned() -> None:
    for engine in ("onnxruntime", "torch"):
        G = backbones.build("efficientnet-lite0", weights="random", at="fc", engine=engine).G
        z = G.run(INPUT[:1])
        assert not z.is_inference()
        assert z.data_ptr() % 64 == 0
        assert nn.Linear(1280, 2)(z).sum().backward() is None
    assert G([]).shape == (0, 1280)


class _Odd(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.fft.fft(x).real


def test_auto_falls_back_to_torch() -> None:
    example = torch.zeros(1, 4)
    assert isinstance(start_engine(nn.ReLU(), example, engine="auto", threads=1), OnnxEngine)
    assert isinstance(start_engine(_Odd(), example, engine="auto", threads=1), TorchEngine)
    with pytest.raises(BadSetting, match="fft"):
        start_engine(_Odd(), example, engine="onnxruntime", threads=1)
    with pytest.raises(BadSetting, match="onnxruntime, torch"):
        start_engine(nn.ReLU(), example, engine="tpu", threads=1)
    with pytest.raises(BadSetting, match="at least 1"):
        start_engine(nn.ReLU(), example, engine="auto", threads=0)


def test_torch_threads_are_given_back() -> None:
    before = torch.get_num_threads()
    TorchEngine(nn.ReLU(), threads=before + 1)(np.zeros((1, 2), np.float32))
    assert torch.get_num_threads() == before


class _Many(nn.Module):
    """One of everything the converter knows."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.SiLU())
        self.b = nn.Sequential(nn.BatchNorm2d(8), nn.Conv2d(8, 8, 3, padding=1, groups=8))
        self.c = nn.Sequential(nn.MaxPool2d(3, 2, 1), nn.Hardswish(), nn.AvgPool2d(2, 2, 1))
        self.d = nn.Sequential(nn.Dropout(), nn.Linear(16, 5), nn.Sigmoid(), nn.Softmax(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.a(x)
        x = torch.relu(self.b(x)) * 2.0 + x
        x = nn.functional.relu6(self.c(x))
        x = torch.cat([x, x.mul(x)], dim=1)
        x = nn.functional.adaptive_avg_pool2d(x, 1)
        return self.d(torch.flatten(x, 1))


def test_the_converter_knows_the_common_layers() -> None:
    torch.manual_seed(0)
    net = _Many()
    for m in net.modules():
        if isinstance(m, nn.BatchNorm2d):
            m.running_mean = torch.randn(8)
            m.running_var = torch.rand(8) + 0.5
    x = torch.randn(3, 3, 16, 16)
    engine = OnnxEngine(convert_module(net, x), threads=1)
    with torch.no_grad():
        torch.testing.assert_close(engine(x.numpy()), net.eval()(x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "odd",
    [
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(0),
        nn.Conv2d(3, 3, 3, padding="same"),
        nn.Conv2d(3, 3, 3, padding=1, padding_mode="reflect"),
        nn.GELU(),
        nn.BatchNorm2d(3, affine=False),
        nn.AvgPool2d(2, ceil_mode=True),
    ],
)
def test_what_it_does_not_know_it_says(odd: nn.Module) -> None:
    with pytest.raises(Unconvertible):
        convert_module(odd, torch.zeros(1, 3, 4, 4))


def test_the_file_is_valid_onnx_with_its_labels(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    import onnxruntime

    backbone = backbones.build("efficientnet-lite0", weights="random")
    head = Head(1280)
    head.n = 3
    torch.manual_seed(0)
    head.weight.data[:3] = torch.randn(3, 1280) / 30
    module = nn.Sequential(backbone.G.network, backbone.F.body, head, nn.Softmax(1))
    example = backbone.G.preprocess(INPUT[0])[None]
    path = export(module, example, tmp_path / "m.onnx", {"labels": '["a", "ü"]'}, output="scores")
    onnx.checker.check_model(str(path), full_check=True)
    assert [p.name for p in tmp_path.iterdir()] == ["m.onnx"]
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    assert session.get_modelmeta().custom_metadata_map == {"labels": '["a", "ü"]'}
    (scores,) = session.run(["scores"], {"input": INPUT[:2]})
    with torch.no_grad():
        expected = module(torch.from_numpy(INPUT[:2]))
    torch.testing.assert_close(torch.from_numpy(scores), expected, rtol=1e-4, atol=1e-5)


def test_nothing_is_printed_and_onnx_is_not_needed() -> None:
    code = (
        "import sys; sys.modules['onnx'] = sys.modules['onnxscript'] = None\n"
        "from verse import backbones\n"
        "assert backbones.build(weights='random').G.engine == 'onnxruntime'"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == done.stderr == ""
