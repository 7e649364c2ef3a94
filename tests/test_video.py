"""Videos that the tests encode: frames in time, labels by ranges, teaching and a time line."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

import verse.video.source
from verse.cli import main
from verse.datasets.films import pixels
from verse.types import BadData, BadSetting, Prediction
from verse.video import Range, label_at, read_ranges, shots, sidecar, spans

av = pytest.importorskip("av", reason="videos need the extra video (PyAV)")

COLOURS = {"red": (200, 30, 30), "green": (30, 200, 30), "blue": (30, 30, 200)}


def encode(
    path: Path, scenes: Sequence[str], *, rate: int = 10, codec: str = "mpeg4", first: int = 0
) -> Path:
    """A second of each colour, lit from one side; ``first`` is the time of the first frame."""
    random = np.random.default_rng(0)
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=rate)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        number = first * rate
        for scene in scenes:
            for _ in range(rate):
                light = np.linspace(-25, 25, 64)[None, :, None] + random.integers(-8, 8)
                image = np.clip(COLOURS[scene] + light.repeat(48, 0), 0, 255).astype(np.uint8)
                frame = av.VideoFrame.from_ndarray(image, "rgb24")
                frame.pts, frame.time_base = number, Fraction(1, rate)
                container.mux(stream.encode(frame))
                number += 1
        container.mux(stream.encode())
    return path


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return encode(tmp_path_factory.mktemp("films") / "table.mp4", ["red", "green", "blue"])


def run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


# ---- frames -----------------------------------------------------------------------------------


def test_every_frame_with_its_time(film: Path) -> None:
    taken = list(shots(str(film)))
    assert [round(shot.time, 3) for shot in taken] == [round(0.1 * i, 3) for i in range(30)]
    assert taken[15].image.shape == (48, 64, 3)
    assert np.abs(taken[15].image.mean((0, 1)) - COLOURS["green"]).max() < 12


@pytest.mark.parametrize(("every", "count"), [(0.0, 30), (0.1, 30), (0.25, 12), (1.0, 3), (9.0, 1)])
def test_thinning_in_time(film: Path, every: float, count: int) -> None:
    assert len(list(shots(str(film), every=every))) == count


def test_stopping_early(film: Path) -> None:
    assert [shot.time for shot in shots(str(film), seconds=0.25)] == pytest.approx([0, 0.1, 0.2])


@pytest.mark.parametrize(
    ("ending", "codec"), [(".mkv", "libx264"), (".avi", "mpeg4"), (".webm", "libvpx")]
)
def test_other_formats_and_films_that_do_not_begin_at_zero(
    tmp_path: Path, ending: str, codec: str
) -> None:
    try:
        path = encode(
            tmp_path / f"a{ending}", ["red"], codec=codec, first=0 if ending == ".avi" else 5
        )
    except (OSError, ValueError) as error:
        pytest.skip(f"this build of FFmpeg cannot encode {codec}: {error}")
    taken = list(shots(str(path)))
    assert len(taken) == 10 and taken[0].time == 0.0
    assert taken[-1].time == pytest.approx(0.9, abs=0.01)


def test_what_is_no_video_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.mp4").write_bytes(b"not a film")
    with pytest.raises(BadData, match="cannot be opened as a video"):
        list(shots(str(tmp_path / "a.mp4")))
    with pytest.raises(BadData, match="cannot be opened as a video"):
        list(shots(str(tmp_path / "none.mp4")))
    with pytest.raises(BadSetting, match="lengths of time"):
        list(shots(str(tmp_path / "a.mp4"), every=-1))


def test_sound_alone_is_told(tmp_path: Path) -> None:
    with av.open(str(tmp_path / "sound.mp4"), "w") as container:
        stream = container.add_stream("aac", rate=8000)
        silence = np.zeros((1, 1024), np.float32)
        frame = av.AudioFrame.from_ndarray(silence, format="fltp", layout="mono")
        frame.sample_rate = 8000
        container.mux(stream.encode(frame))
        container.mux(stream.encode())
    with pytest.raises(BadData, match="no video track"):
        list(shots(str(tmp_path / "sound.mp4")))


@pytest.mark.parametrize(
    ("degrees", "corner"), [(0, (0, 0)), (90, (1, 0)), (-90, (0, 1)), (180, (1, 1))]
)
def test_a_phone_held_sideways(degrees: int, corner: tuple[int, int]) -> None:
    image = np.zeros((4, 6, 3), np.uint8)
    image[0, 0] = 255
    frame = SimpleNamespace(to_ndarray=lambda **_: image, rotation=degrees)
    upright = pixels(frame)
    assert upright.shape == ((4, 6, 3) if degrees % 180 == 0 else (6, 4, 3))
    down, right = corner
    assert upright[-down, -right].tolist() == [255, 255, 255]
    assert upright.flags.c_contiguous


def test_a_camera_by_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """FFmpeg's own test picture in the place of a camera."""
    fake = {"linux": ("lavfi", "testsrc=size=64x48:rate=10:duration={}9")}
    monkeypatch.setattr(verse.video.source, "CAMERAS", fake)
    monkeypatch.setattr("sys.platform", "linux")
    taken = list(shots("camera:1", every=0.5, seconds=2))
    assert [shot.time for shot in taken] == pytest.approx([0, 0.5, 1, 1.5])
    assert taken[0].image.shape == (48, 64, 3)


def test_no_camera_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadData, match="is one connected"):
        list(shots("camera:97"))
    monkeypatch.setattr("sys.platform", "amiga")
    with pytest.raises(BadSetting, match="no way to a camera on amiga"):
        list(shots("camera:0"))


# ---- labels -----------------------------------------------------------------------------------


def test_ranges_in_both_forms(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("\ufeffstart, end, label\n1:00.5, 1:02, cup\n0, 2, mug\n")
    (tmp_path / "a.json").write_text(
        json.dumps(
            [{"start": 0, "end": 2, "label": "mug"}, {"start": "60.5", "end": 62, "label": "cup"}]
        )
    )
    expected = [Range(0, 2, "mug"), Range(60.5, 62, "cup")]
    assert read_ranges(tmp_path / "a.csv") == read_ranges(tmp_path / "a.json") == expected
    assert [label_at(expected, t) for t in (0, 1.99, 2, 61, 62)] == [
        "mug",
        "mug",
        None,
        "cup",
        None,
    ]
    assert sidecar(tmp_path / "a.mp4") == tmp_path / "a.csv"


def test_open_ends_and_numbers_as_labels(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('[{"label": 7}]')
    assert read_ranges(tmp_path / "a.json") == [Range(0, math.inf, 7)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("start,end,label\n", "no ranges"),
        ("from,to,what\n0,1,mug\n", "lacks the column"),
        ("start,end,label\n0,1,\n", "line 2: a label"),
        ("start,end,label\n0,1,mug\n2,1,cup\n", "line 3: a range goes"),
        ("start,end,label\n-1,1,mug\n", "a range goes"),
        ("start,end,label\nsoon,1,mug\n", "a time is in seconds"),
        ("start,end,label\nnan,1,mug\n", "a time is in seconds"),
        ("start,end,label\n0,3,mug\n2,4,cup\n", "overlap"),
        ('{"start": 0}', "no list of"),
        ("[{", "is not JSON"),
        ('[{"start": true, "label": "mug"}]', "a time is in seconds"),
        ('[{"label": false}]', "a label is"),
    ],
)
def test_bad_ranges_are_told(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / ("a.json" if text.startswith(("[", "{")) else "a.csv")
    path.write_text(text)
    with pytest.raises(BadData, match=message):
        read_ranges(path)


def test_missing_ranges_are_told(tmp_path: Path) -> None:
    with pytest.raises(BadData, match=r"Write a\.csv beside it"):
        sidecar(tmp_path / "a.mp4")
    with pytest.raises(BadData, match="no file"):
        read_ranges(tmp_path / "a.csv")
    (tmp_path / "a.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadData, match="UTF-8"):
        read_ranges(tmp_path / "a.csv")


def test_spans() -> None:
    def said(label: str | None, p: float) -> Prediction:
        return Prediction(label, {} if label is None else {label: p}, 1)

    answers = [(0.0, said("a", 0.5)), (1.0, said("a", 0.7)), (2.0, said("b", 0.9))]
    got = list(spans(answers))
    assert [(s.start, s.end, s.label, s.frames) for s in got] == [(0, 2, "a", 2), (2, 2, "b", 1)]
    assert got[0].confidence == pytest.approx(0.6)
    assert list(spans([])) == []
    assert [s.confidence for s in spans([(0.0, said(None, 0))])] == [0]


# ---- from the shell ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def taught(film: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory taught from the film by the file beside it."""
    folder = tmp_path_factory.mktemp("taught")
    rounds = encode(folder / "rounds.mp4", [*COLOURS] * 2)
    rounds.with_suffix(".json").write_text(
        json.dumps([{"start": t, "end": t + 1, "label": [*COLOURS][t % 3]} for t in range(6)])
    )
    code, out, _ = run("teach", folder / "shelf", rounds, "--every", "0.1", "--json")
    assert code == 0
    told = json.loads(out)
    assert told["learned"] == 60 and told["classes"] == ["red", "green", "blue"]
    return folder / "shelf"


def test_teaching_again_learns_nothing_twice(taught: Path, film: Path) -> None:
    """A killed lesson goes on where it stopped, and gaps between ranges are not learned."""
    film.with_suffix(".csv").write_text("start,end,label\n0,0.5,red\n2,2.4,blue\n")
    for expected in ((3, 0), (0, 3)):
        code, out, _ = run("teach", taught, film, "--every", "0.3", "--json")
        assert code == 0
        told = json.loads(out)
        assert (told["learned"], told["known"], told["samples"]) == (*expected, 63)


def test_a_time_line(taught: Path, tmp_path: Path) -> None:
    other = encode(tmp_path / "other.mkv", ["blue", "red", "green"])
    code, out, _ = run("predict", taught, other, "--every", "0.25", "--json")
    assert code == 0
    (told,) = json.loads(out)
    assert [s["label"] for s in told["spans"]] == ["blue", "red", "green"]
    assert [s["start"] for s in told["spans"]] == pytest.approx([0, 1, 2], abs=0.1)
    assert len(told["frames"]) == sum(s["frames"] for s in told["spans"]) == 12
    code, out, _ = run("predict", taught, other)
    lines = out.splitlines()
    assert code == 0 and lines[0] == str(other)
    assert lines[1].split() == ["from", "to", "label", "confidence", "frames"]
    assert [line.split()[2] for line in lines[2:]] == ["blue", "red", "green"]


def test_images_and_videos_together_and_a_bad_one(taught: Path, film: Path, tmp_path: Path) -> None:
    from PIL import Image

    Image.new("RGB", (40, 40), COLOURS["green"]).save(tmp_path / "g.png")
    (tmp_path / "bad.mp4").write_bytes(b"?")
    code, out, _ = run("predict", taught, tmp_path / "g.png", film, tmp_path / "bad.mp4", "--json")
    told = json.loads(out)
    assert code == 2
    assert told[0]["nearest"] == "green" and len(told[1]["spans"]) == 3
    assert "cannot be opened" in told[2]["error"]
    code, out, err = run("predict", taught, tmp_path / "g.png", film, tmp_path / "bad.mp4")
    assert (
        code == 2 and "unreadable" in " ".join(out.split()) and "cannot be" in " ".join(err.split())
    )


def test_one_label_for_all_of_it(film: Path, tmp_path: Path) -> None:
    arguments = [tmp_path / "d", film, "--label", "table", "--every", "1", "--seconds", "2"]
    code, out, _ = run("teach", *arguments, "--json")
    assert code == 0
    assert json.loads(out)["learned"] == 2 and json.loads(out)["classes"] == ["table"]


def test_a_camera_from_the_shell(taught: Path, tmp_path: Path, monkeypatch) -> None:
    red = "0x{:02x}{:02x}{:02x}".format(*COLOURS["red"])
    fake = {"linux": ("lavfi", f"color=c={red}:size=64x48:rate=10:d=9{{}}")}
    monkeypatch.setattr(verse.video.source, "CAMERAS", fake)
    monkeypatch.setattr("sys.platform", "linux")
    code, out, _ = run("predict", taught, "camera:0", "--seconds", "1")
    assert code == 0
    assert out.startswith("0:00.0  red") and len(out.splitlines()) == 1
    code, _, err = run("predict", taught, "camera:0", "--json")
    assert code == 2 and "--seconds" in err
    code, _, err = run("teach", tmp_path / "d", "camera:0", "--seconds", "1")
    assert code == 2 and "give --label or --ranges" in err
    code, out, _ = run(
        "teach", tmp_path / "d", "camera:0", "--label", "red", "--seconds", "1", "--json"
    )
    assert code == 0 and json.loads(out)["learned"] == 5


def test_what_a_video_shows_must_be_said(film: Path, tmp_path: Path) -> None:
    lonely = tmp_path / "lonely.mp4"
    lonely.write_bytes(film.read_bytes())
    code, _, err = run("teach", tmp_path / "d", lonely)
    assert code == 2 and "lonely.csv" in err
    (tmp_path / "r.csv").write_text("start,end,label\n0,1,red\n")
    code, _, err = run(
        "teach", tmp_path / "d", film, "--label", "a", "--ranges", tmp_path / "r.csv"
    )
    assert code == 2 and "not both" in err
    assert not (tmp_path / "d").exists()
