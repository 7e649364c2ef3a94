"""The store: what goes in comes out, several may write, and damage is told and never counted."""

from __future__ import annotations

import json
import multiprocessing
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from verse.experiments import Run, execute
from verse.experiments.jsonl import Damaged, seal, unseal
from verse.experiments.line import Entry, decode, encode
from verse.experiments.result import Bound
from verse.experiments.run import identify
from verse.experiments.store import NotCounted, Store

Toy = Callable[..., Run]


@pytest.mark.parametrize("order", ["iid", "class-iid", "instance", "class-instance"])
def test_the_store_gives_back_what_it_got(toy: Toy, tmp_path: Path, order: str) -> None:
    result = execute(toy(order=order, offline=True, settings={"C": 4}, options={"videos": 3}))
    assert Store(tmp_path).add(encode(result)) == 1
    (again,) = Store(tmp_path).results()
    last = result.events[-1]
    assert again.events[-1] == last and last.confusion
    assert [replace(e, confusion=[]) for e in result.events[:-1]] == list(again.events[:-1])
    assert replace(again, run=result.run, events=result.events) == result
    assert again.run.document() == result.run.document()
    assert again.settings["C"] == 4
    assert (tmp_path / "verse_toy.load" / "verse.jsonl").read_bytes().count(b"\n") == 1


def test_a_line_says_only_what_the_others_do_not(toy: Toy, tmp_path: Path) -> None:
    store = Store(tmp_path)
    for learner in ("ncm", "slda", "verse"):
        store.add(encode(execute(toy(learner=learner, offline=True))))
    shared = (tmp_path / "verse_toy.load" / "shared.jsonl").read_bytes().splitlines()
    assert len(shared) == 3  # data, circumstances, Offline: once for the three of them
    assert all(len(file.read_bytes()) < 2500 for file in tmp_path.glob("*/[nsv]*a.jsonl"))


def test_events_that_follow_no_rule_are_kept_whole(toy: Toy, tmp_path: Path) -> None:
    result = execute(toy(offline=True))
    odd = tuple(
        replace(event, accuracy=0.123, classes=[1, 0][:t]) for t, event in enumerate(result.events)
    )
    bounds = (replace(result.offline[0], by_video=[[99, 1, 2]]), *result.offline[1:])
    strange = replace(result, events=odd, offline=bounds)
    entry = encode(strange)
    again = decode(entry.line, entry.shared)
    assert again.alpha == strange.alpha and again.offline == bounds


def test_the_best_reference_is_kept(toy: Toy) -> None:
    result = execute(toy(offline=True))
    better = tuple(
        replace(b, best="lda", best_by_video=[[v, n, n] for v, _, n in b.by_video])
        for b in result.offline
    )
    entry = encode(replace(result, offline=better))
    again = decode(entry.line, entry.shared)
    assert again.offline == better and again.reference == "lda"
    assert again.omega_all == pytest.approx(result.mu_all)
    assert again.omega_paper == result.omega_paper


def damage(kind: str, text: bytes) -> bytes:
    line = text.rstrip(b"\n")
    document = json.loads(line)
    if kind == "digit":
        return text.replace(b'"learned":64', b'"learned":63')
    if kind == "rehashed":  # somebody else's content under this identity, hash and all
        document.pop("hash")
        return seal(document | {"id": "0" * 16})
    if kind == "nested":
        return b"[" * 100_000 + b"]" * 100_000 + b"\n"
    return {
        "empty": b"\n",
        "cut": line[:-40] + b"\n",
        "garbage": b"\xff\xfe garbage\n",
        "list": b"[1]\n",
        "without hash": json.dumps(document | {"hash": 1}).encode() + b"\n",
        "number": b"3\n",
    }[kind]


KINDS = ("digit", "rehashed", "empty", "cut", "garbage", "list", "without hash", "number", "nested")


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_line_is_told_and_not_counted(toy: Toy, tmp_path: Path, kind: str) -> None:
    store = Store(tmp_path)
    bad, good = toy(), toy(seed=1)
    store.add(*(encode(execute(run)) for run in (bad, good)))
    file = tmp_path / "verse_toy.load" / "verse.jsonl"
    first, second = file.read_bytes().splitlines(keepends=True)
    changed = damage(kind, first)
    assert changed != first
    file.write_bytes(changed + second)
    with pytest.warns(NotCounted):
        assert store.ids() == {good.id}
    assert store.has(good) and not store.has(bad)
    with pytest.raises(Damaged) as told:
        store.results()
    assert "\n" not in str(told.value)
    if kind == "rehashed":
        assert "another run than its identity says" in str(told.value)
        return
    assert "verse.jsonl, line 1" in str(told.value) and "verse results repair" in str(told.value)
    assert [r.id for r in store.results(skip_damaged=True)] == [good.id]
    store.add(encode(execute(bad)))  # the run again
    assert store.repair() == 1
    assert {r.id for r in store.results()} == {bad.id, good.id}
    assert file.with_suffix(".damaged").read_bytes() == changed


def test_a_line_that_was_not_written_to_its_end_is_cut_off_by_the_next(
    toy: Toy, tmp_path: Path
) -> None:
    store, runs = Store(tmp_path), [toy(seed=seed) for seed in range(3)]
    store.add(encode(execute(runs[0])))
    file = tmp_path / "verse_toy.load" / "verse.jsonl"
    whole = file.read_bytes()
    store.add(encode(execute(runs[1])))
    both = file.read_bytes()
    for end in (len(whole) + 1, len(whole) + 300, len(both) - 2):
        file.write_bytes(both[:end])
        with pytest.warns(NotCounted, match="line 2"):
            assert [r.id for r in store.results()] == [runs[0].id]
        store.add(encode(execute(runs[2])))
        assert store.ids() == {runs[0].id, runs[2].id}
    file.write_bytes(both[:-1])  # everything but the end of the line: nothing is missing
    store.add(encode(execute(runs[2])))
    assert store.ids() == {run.id for run in runs}


def test_what_runs_share_is_missed(toy: Toy, tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.add(encode(execute(toy())))
    (tmp_path / "verse_toy.load" / "shared.jsonl").unlink()
    with pytest.warns(NotCounted, match=r"shared\.jsonl"):
        assert store.ids() == set()
    with pytest.raises(Damaged, match="shares with other runs"):
        store.results()


def test_a_run_twice_is_the_same_run(toy: Toy, tmp_path: Path) -> None:
    store, entry = Store(tmp_path), encode(execute(toy()))
    assert (store.add(entry, entry), store.add(entry)) == (1, 0)
    file = tmp_path / "verse_toy.load" / "verse.jsonl"
    file.write_bytes(file.read_bytes() * 2)  # two histories put together
    assert len(store.results()) == 1


def test_a_file_chooses_no_code(toy: Toy) -> None:
    result = execute(toy())
    evil = result.run.document() | {"learner": "evil.Learner", "backbone": "evil.G"}
    forged = identify(evil | {"settings": dict(evil["settings"]) | result.defaults})
    entry = encode(replace(result, run=Run.from_record(evil), id=forged))
    read = decode(unseal(seal(entry.line)), entry.shared)
    assert read.run.learner == "evil.Learner"  # a word, nothing more


def _fill(folder: str, seeds: list[int], entry: Entry) -> None:
    for seed in seeds:
        Store(Path(folder)).add(replace(entry, line=entry.line | {"id": f"{seed:016x}"}))


def test_several_processes_lose_nothing(toy: Toy, tmp_path: Path) -> None:
    entry = encode(execute(toy()))
    context = multiprocessing.get_context("spawn")
    share = [list(range(40)), list(range(20, 60))]
    processes = [
        context.Process(target=_fill, args=(str(tmp_path), seeds, entry)) for seeds in share
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(280)  # a busy machine takes long to start them
        assert process.exitcode == 0
    lines = (tmp_path / "verse_toy.load" / "verse.jsonl").read_bytes().splitlines()
    assert sorted(int(unseal(line)["id"], 16) for line in lines) == list(range(60))


def test_the_digest_is_of_the_content(toy: Toy, tmp_path: Path) -> None:
    results = [execute(toy(seed=seed)) for seed in (0, 1)]
    one, other = Store(tmp_path / "one"), Store(tmp_path / "other")
    one.add(*map(encode, results))
    for result in reversed(results):
        other.add(encode(result))
    assert one.digest() == other.digest()
    third = Store(tmp_path / "third")
    third.add(encode(replace(results[0], learned=63)), encode(results[1]))
    assert third.digest() != one.digest()


def test_bounds_without_a_best_are_as_they_were() -> None:
    assert Bound(0.9, [], 1, True, {}).reference == 0.9


def test_a_clean_store_gives_no_warning(toy: Toy, tmp_path: Path) -> None:
    Store(tmp_path).add(encode(execute(toy())))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(Store(tmp_path).ids()) == 1


def test_what_is_printed_says_where_it_is() -> None:
    assert repr(Store(Path("results"))) == "Store('results')"
