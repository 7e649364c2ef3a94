"""``make demo``, on frames so small and few that it takes seconds."""

from __future__ import annotations

import importlib.util
import re
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

import verse
from verse.configuration import DEFAULT_LEARNER


@pytest.fixture
def demo(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("demo", root / "demo.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setenv("VERSE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    options = {"frames": 2, "size": 32, "instances": 3, "sessions": 2}
    monkeypatch.setattr(module, "BASE", replace(module.BASE, options=options))
    monkeypatch.setattr(module, "TAUGHT", 1)
    return module


def test_the_demo(demo: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    demo.main()
    out, err = capsys.readouterr()
    assert "takes about a minute" in err.splitlines()[0]
    assert out.splitlines()[1].split()[0] == DEFAULT_LEARNER  # in front
    assert {"VERSE", "replay", "fine-tuning"} <= set(out.split())
    last = err.splitlines()[-1]
    assert "serve demo/model --open" in last and "12 kinds of things already taught" in last

    page = Path("demo/index.html").read_text(encoding="utf-8")
    assert page.index(f"<td>{DEFAULT_LEARNER}") < page.index("<td>VERSE")
    assert page.count("<figure") == 24 and "prefers-color-scheme: dark" in page
    for name in re.findall(r'(?:src|srcset)="(\w[^":]*)"', page):
        assert Path("demo", name).exists()
    with verse.open("demo/model", readonly=True) as model:
        assert (len(model.classes), model.samples) == (12, 12)
    assert "taught" in demo.teach(demo.prepare(demo.BASE))  # once more: nothing is taught twice
    with verse.open("demo/model") as model:
        assert model.samples == 12
        assert "as it was" in demo.teach(demo.prepare(demo.BASE))  # it is being served
    assert "demo" not in sys.modules
