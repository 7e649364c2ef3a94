"""docs/security.md says only what a test shows."""

from __future__ import annotations

import re
from pathlib import Path

from verse.serve.limits import MIB, Limits
from verse.serve.workers.decoder import SECONDS

ROOT = Path(__file__).parents[2]


def test_every_line_names_a_test_that_exists() -> None:
    lines = (ROOT / "docs" / "security.md").read_text().splitlines()
    claims = [line for line in lines if line.startswith("| ") and not line.startswith("| What")]
    assert len(claims) > 30
    for line in claims:
        found = re.search(r"`(tests/[\w/]+\.py)::(test_\w+)` \|$", line)
        assert found, line
        file, name = ROOT / found[1], found[2]
        assert file.is_file() and f"def {name}(" in file.read_text(), line


def test_its_numbers_are_the_defaults() -> None:
    text, limits = (ROOT / "docs" / "security.md").read_text(), Limits()
    in_flight = (
        f"{limits.in_flight_per_address // MIB} MiB per address, {limits.in_flight // MIB} MiB"
    )
    for phrase in (
        f"killed after {SECONDS:g} seconds",
        f"Headers must arrive within {limits.header_seconds:g} seconds",
        f"A body must arrive within {limits.body_seconds:g} seconds",
        f"Idle connections are closed after {limits.idle_seconds:g} seconds",
        f"at most {limits.connections_per_address} of the {limits.connections} connections",
        f"at most {in_flight} in all",
        f"`--max-bytes` ({limits.body // MIB} MiB) with an image, {limits.document // 1024} KiB",
        f"at most {limits.listeners_per_address} per address, {limits.listeners} in all",
    ):
        assert phrase in text, phrase
