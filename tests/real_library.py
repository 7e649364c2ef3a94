"""Libraries whose pins do not fit ours live in environments of their own, made once."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

import filelock
import pytest

from verse.paths import cache_directory


def find_python(name: str, wanted: Sequence[str], root: Path) -> Path:
    """The Python of an environment with the wanted packages; it borrows what is installed here.

    It is made where ``CI`` is set (about a minute, kept under the user's cache), or named by the
    variable ``VERSE_`` + the name in capitals.
    """
    variable = f"VERSE_{name.upper()}"
    if named := os.environ.get(variable):
        return Path(named)
    if not os.environ.get("CI"):
        pytest.skip(f"makes an environment: set CI=true, or {variable} to a Python that has it")
    version = "-".join(package.partition("==")[2] for package in wanted)
    folder = cache_directory() / f"{name}-{version}-{sys.version_info[0]}.{sys.version_info[1]}"
    python = folder / "bin" / "python"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(f"{folder}.lock"):
        if not (folder / "complete").exists():
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        site = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
        (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
        if not (folder / "complete").exists():
            pins = ["-c", str(root / "constraints.txt")]
            quick = ["--quiet", "--no-compile"]  # what is used is compiled then
            install = [str(python), "-m", "pip", "install", *quick, *pins, *wanted]
            done = subprocess.run(install, capture_output=True, text=True, check=False)
            if done.returncode:
                pytest.skip(f"{name} cannot be installed here: {done.stderr.strip()[-300:]}")
            (folder / "complete").touch()
    return python
