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
TESTS = (f"{HERE}/test_timm_model.py", f"{HERE}/test_hugging_face.py", "tests/test_docs.py")
MEANT = "timm_model or hugging_face or own-backbone-"


@pytest.mark.timeout(900)  # it may have to make the environment
def test_with_the_real_libraries(root: Path) -> None:
    python = find_python("vision", WANTED, root)
    quiet = ("-q", "-p", "no:cacheprovider", "-p", "no:xdist")
    done = subprocess.run(
        [str(python), "-m", "pytest", *quiet, *TESTS, "-k", MEANT],
        env={**os.environ, "PYTHONPATH": str(root), "HF_HUB_OFFLINE": "1"},
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "skipped" not in done.stdout.splitlines()[-1], done.stdout[-2000:]
