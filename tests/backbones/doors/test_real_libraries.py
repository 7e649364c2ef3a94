"""timm and transformers themselves, in an environment of their own (timm brings torchvision).

The tests are in ``test_timm_model.py`` and ``test_hugging_face.py``, and run there with its pytest.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.real_library import find_python

WANTED = ("timm==1.0.30", "torchvision==0.28.0", "transformers==5.22.2", "onnxscript==0.7.2")


HERE = "tests/backbones/doors"


@pytest.mark.parametrize(
    "tests",
    [
        [f"{HERE}/test_timm_model.py"],
        [f"{HERE}/test_hugging_face.py"],
        ["tests/test_docs.py", "-k", "own-backbone-"],
    ],
    ids=["timm", "transformers", "tutorials"],
)
def test_with_the_real_library(tests: list[str], root: Path) -> None:
    python = find_python("vision", WANTED, root)
    done = subprocess.run(
        [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests],
        env={**os.environ, "PYTHONPATH": str(root), "HF_HUB_OFFLINE": "1"},
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
