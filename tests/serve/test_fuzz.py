"""What nobody should send: never a 5xx, never a change (the long version: benchmarks/fuzz.py)."""

from __future__ import annotations

import pytest
import torch

from benchmarks.fuzz import attack, explore
from verse.serve.app import create_app
from verse.serve.limits import Limits


# starlette leaves the temporary file of a malformed form to the garbage collector
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_malformed_images_and_bodies_change_nothing(serve, session, picture) -> None:
    client = serve()
    for label in ("red", "blue"):
        client.post("/v1/learn", files={"image": picture(label)}, data={"label": label})
    before = {k: v.clone() for k, v in session.classifier.learner.state().items()}
    last = session.classifier.journal.last
    codes = attack(client, picture("red"), requests=400, seed=0)
    assert sum(codes.values()) == 400 and not [code for code in codes if code >= 500]
    after = session.classifier.learner.state()
    assert all(torch.equal(before[k], after[k]) for k in before)
    assert session.classifier.journal.last == last


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_schemathesis_finds_no_server_error(session) -> None:
    calls = explore(create_app(session, limits=Limits(rate=0)), examples=8)
    assert calls > 100
