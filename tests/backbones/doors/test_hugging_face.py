"""Against transformers itself, with small random models.

Runs in the environment that ``test_real_libraries.py`` makes.
"""

from __future__ import annotations

import importlib.util
import json
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from tests.backbones.doors import end_to_end
from verse import backbones
from verse.backbones.doors.libraries import import_library
from verse.types import BadSetting, BadState, VerseError

if importlib.util.find_spec("transformers") is None:
    pytest.skip("no transformers here: test_real_libraries.py runs this", allow_module_level=True)
t = import_library("transformers")

SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "image_size": 32,
    "patch_size": 8,
}
TEXT = {
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "vocab_size": 99,
    "intermediate_size": 64,
    "bos_token_id": 0,
    "eos_token_id": 1,
}
SIDES = {"height": 32, "width": 32}
STAGES = {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1]}


def models() -> dict[str, tuple[Any, Any]]:
    """Kind → (configuration, image processor)."""
    crop, fixed = {"size": {"shortest_edge": 36}, "crop_size": SIDES}, {"size": SIDES}
    percent = {"size": {"shortest_edge": 64}, "crop_pct": 0.875}
    both = {"vision_config": SMALL, "text_config": TEXT}
    return {
        "dinov2": (t.Dinov2Config(**SMALL), t.BitImageProcessor(**crop)),
        "vit": (t.ViTConfig(**SMALL), t.ViTImageProcessor(**fixed)),
        "clip": (t.CLIPConfig(**both), t.CLIPImageProcessor(**crop)),
        "siglip": (t.SiglipConfig(**both), t.SiglipImageProcessor(**fixed)),
        "convnext": (t.ConvNextConfig(**STAGES), t.ConvNextImageProcessor(**percent)),
    }


SHAPES = {
    "dinov2": (32, 4, 4),
    "vit": (32, 4, 4),
    "clip": (32, 4, 4),
    "siglip": (32, 4, 4),
    "convnext": (32, 2, 2),
}
PHOTO = Image.fromarray(
    np.random.default_rng(0).integers(0, 256, (2, 3, 3), dtype=np.uint8)
).resize((120, 90), Image.Resampling.BICUBIC)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every model in a folder of its kind."""
    place = tmp_path_factory.mktemp("models")
    torch.manual_seed(0)
    for kind, (config, processor) in models().items():
        t.AutoModel.from_config(config).save_pretrained(place / kind)
        processor.save_pretrained(place / kind)
    return place


@pytest.fixture
def copy(folders: Path, tmp_path: Path) -> Path:
    """A model whose files may be spoilt."""
    shutil.copytree(folders / "vit", tmp_path / "vit")
    return tmp_path / "vit"


def build(folder: Path | str, **options: Any) -> backbones.Backbone:
    return backbones.build(f"hf:{folder}", **({"engine": "torch", "threads": 1} | options))


def pixels(backbone: backbones.Backbone) -> torch.Tensor:
    """What the model itself sees of the photo."""
    return backbone.G.network[0](torch.from_numpy(np.stack([backbone.G.preprocess(PHOTO)])))


@pytest.mark.parametrize("kind", SHAPES)
def test_every_kind_gives_a_map(folders: Path, kind: str) -> None:
    backbone = build(folders / kind, at="map")
    assert backbone.G.z_shape == SHAPES[kind]
    assert build(folders / kind).G.z_shape == (32, 2, 2)


@pytest.mark.parametrize("kind", SHAPES)
def test_pixels_are_those_of_its_own_processor(folders: Path, kind: str) -> None:
    backbone = build(folders / kind)
    processor = t.AutoImageProcessor.from_pretrained(folders / kind, backend="pil")
    theirs = torch.as_tensor(
        np.asarray(processor(images=PHOTO, return_tensors="np")["pixel_values"])
    )
    ours = pixels(backbone)
    assert theirs.shape == ours.shape
    std = min(backbone.G.prepare.std)
    # they resize to whole pixels first and crop then: up to half a pixel lies between the two
    assert (theirs - ours).abs().max() < 8 / 255 / std


def test_the_features_are_the_models_own(folders: Path) -> None:
    backbone = build(folders / "dinov2", at="map")
    model = t.AutoModel.from_pretrained(folders / "dinov2").eval()
    x = pixels(backbone)
    with torch.no_grad():
        patches = model(pixel_values=x).last_hidden_state[:, 1:]
    z = backbone.G([PHOTO])
    torch.testing.assert_close(z[0, :, 0, 1], patches[0, 1], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(z[0, :, 2, 3], patches[0, 11], rtol=1e-4, atol=1e-5)


def test_the_key_binds_weights_pixels_and_split_but_not_the_place(
    folders: Path, copy: Path
) -> None:
    first = build(folders / "vit")
    assert build(copy).key == first.key != build(copy, at="fc").key
    pixels = json.loads((copy / "preprocessor_config.json").read_text())
    (copy / "preprocessor_config.json").write_text(json.dumps(pixels | {"image_mean": [0.4] * 3}))
    assert build(copy).key != first.key
    assert build(copy, weights="random").key == build(copy, weights="random").key


def test_the_hubs_revision_is_recorded(folders: Path, tmp_path: Path, monkeypatch: Any) -> None:
    hub = import_library("huggingface_hub")
    asked = []

    def download(repository: str, revision: str | None = None, allow_patterns: Any = ()) -> str:
        asked.append((repository, revision))
        assert not any("bin" in p or "py" in p for p in allow_patterns)
        place = tmp_path / "snapshots" / (revision or "c0ffee")
        shutil.copytree(folders / "vit", place, dirs_exist_ok=True)
        return str(place)

    monkeypatch.setattr(hub, "snapshot_download", download)
    first = build("some/vit")
    assert first.name == "hf:some/vit@c0ffee"
    assert build(first.name.removeprefix("hf:")).key == first.key != build("some/vit@beef").key
    assert asked == [("some/vit", None), ("some/vit", "c0ffee"), ("some/vit", "beef")]


def test_without_a_connection_it_says_what_to_download() -> None:
    with pytest.raises(BadSetting, match=r"download config\.json.*model\.safetensors.*hf:FOLDER"):
        build("some/thing-that-is-not-here")
    with pytest.raises(BadSetting, match="no folder at"):
        build("./nowhere")


# ---- hostile folders --------------------------------------------------------------------------


class Evil:
    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (Path("executed"),)


def spoil(folder: Path, how: str) -> None:
    config = json.loads((folder / "config.json").read_text())
    weights = folder / "model.safetensors"
    if how == "pickle":
        weights.unlink()
        (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Evil()))
    elif how == "zip":
        weights.write_bytes(b"PK\x03\x04" * 99)
    elif how == "remote code":
        config["auto_map"] = {"AutoModel": "evil.Model"}
        (folder / "evil.py").write_text("open('executed', 'w')")
    elif how == "unknown":
        config["model_type"] = "evil"
    elif how == "incomplete":
        config["num_hidden_layers"] = 3
    elif how == "bomb":
        config["padding"] = "x" * (1 << 20)
    elif how == "no json":
        config = []
    elif how == "remote pixels":
        pixels = json.loads((folder / "preprocessor_config.json").read_text())
        pixels["auto_map"] = {"AutoImageProcessor": "evil.Processor"}
        (folder / "preprocessor_config.json").write_text(json.dumps(pixels))
    (folder / "config.json").write_text(json.dumps(config))


REFUSED = {
    "pickle": "pytorch_model.bin is a pickle",
    "zip": "cannot load it",
    "remote code": "code of its own",
    "remote pixels": "code of its own",
    "unknown": "cannot load it",
    "incomplete": "not complete",
    "bomb": "bytes",
    "no json": "no settings",
}


@pytest.mark.parametrize("how", REFUSED)
def test_hostile_folders_are_refused_in_one_sentence(
    copy: Path, tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    spoil(copy, how)
    with pytest.raises(VerseError, match=REFUSED[how]) as told:
        build(copy)
    assert isinstance(told.value, BadState) and "\n" not in str(told.value)
    assert not Path("executed").exists()


def test_from_teaching_to_serving(folders: Path, tmp_path: Path, root: Path) -> None:
    end_to_end.check(f"hf:{folders / 'vit'}", tmp_path, root)
