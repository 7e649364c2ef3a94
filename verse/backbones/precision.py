"""Which precision a network should compute in here: found by trying, not by asking the processor.

Processors, or the virtual machines around them, advertise bfloat16 instructions that they do not
run: a product then ends the process with an illegal instruction. Others run them slower than
float32. So a child process tries, once for each machine and version of torch, and the answer is
kept in the user's cache.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

import torch

from verse.paths import cache_directory, write_atomic
from verse.types import BadSetting

CHOICES = ("auto", "float32", "bfloat16")
GAIN = 1.2  # rounding the weights after every step costs a little; below this it cannot pay
SECONDS = 60

# A 1×1 convolution of the default network's size, forward and backward, alternating.
_TRIAL = """
import json, statistics, sys, time, torch
torch.set_num_threads(int(sys.argv[1]))
def data(kind):
    x, w = torch.randn(1568, 320).to(kind), torch.randn(1280, 320).to(kind)
    return x, w.requires_grad_()
def step(x, w):
    y = torch.nn.functional.linear(x, w)
    torch.autograd.grad(y, w, y)
pairs = {"float32": data(torch.float32), "bfloat16": data(torch.bfloat16)}
times = {name: [] for name in pairs}
for _ in range(12):
    for name, pair in pairs.items():
        start = time.perf_counter()
        step(*pair)
        times[name].append(time.perf_counter() - start)
print(json.dumps({name: statistics.median(t[2:]) for name, t in times.items()}))
"""


def resolve(precision: str) -> str:
    """ "auto" → the faster precision; a precision that this machine cannot run is refused.

    >>> resolve("float32")
    'float32'
    """
    if precision not in CHOICES:
        raise BadSetting(f"precision {precision!r}: use one of {', '.join(CHOICES)}")
    if precision == "auto":
        return "bfloat16" if gain() >= GAIN else "float32"
    if not is_supported(precision):
        raise BadSetting(
            "this machine cannot compute in bfloat16 (a trial ended with an illegal instruction): "
            "use precision='float32' or 'auto'. If the processor does have bfloat16, the variable "
            "ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 may help"
        )
    return precision


def is_supported(precision: str) -> bool:
    """Can this machine compute in it at all?"""
    return precision == "float32" or gain() > 0


@lru_cache(maxsize=1)
def gain() -> float:
    """Time in float32 over time in bfloat16; 0 where bfloat16 does not run."""
    file = _cache_file()
    try:
        return float(json.loads(file.read_text())["gain"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    found = _try()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(file, json.dumps({"gain": found, **describe_machine()}).encode())
    except OSError:
        pass  # a read-only home: try again next time
    return found


def _try() -> float:
    threads = str(torch.get_num_threads())
    try:
        child = subprocess.run(
            [sys.executable, "-c", _TRIAL, threads],
            capture_output=True,
            timeout=SECONDS,
            check=True,
            text=True,
        )
        times = json.loads(child.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return 0.0
    return float(times["float32"]) / float(times["bfloat16"])


def describe_machine() -> dict[str, object]:
    """What a measurement holds for: the processor, threads and version of torch."""
    processor = ""
    try:
        lines = Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
        processor = "\n".join(x for x in lines if x.startswith(("model", "stepping", "flags")))
    except OSError:
        processor = platform.processor()
    return {
        "torch": torch.__version__,
        "processor": hashlib.sha256(processor.encode()).hexdigest()[:16],
        "node": platform.node(),
        "isa": os.environ.get("ONEDNN_MAX_CPU_ISA", ""),
        "threads": torch.get_num_threads(),
    }


def _cache_file() -> Path:
    name = hashlib.sha256(json.dumps(describe_machine(), sort_keys=True).encode()).hexdigest()[:16]
    return cache_directory() / "precision" / f"{name}.json"
