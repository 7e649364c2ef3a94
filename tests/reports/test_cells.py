"""What is pooled and what is not; who is ranked before whom; first, tied and loss."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.reports.made import made
from verse.experiments.result import Result
from verse.reports import ablations, omega, verdicts
from verse.reports.cells import Sorted, ranked

EASY, HARD = [0.9] * 12, [0.5] * 12


def runs(learner: str, shares: dict[int, float], **record: object) -> list[Result]:
    """Seed → the share that is right."""
    return [made(learner, seed, [share] * 12, **record) for seed, share in shares.items()]


@pytest.mark.parametrize(
    "other",
    [
        {"validation": "last:1"},
        {"thin": 2},
        {"capacity": "1%"},
        {"settings": {"lr": 0.03}},
        {"weights": "other.pth"},
        {"batchnorm": "train"},
        {"at": "fc"},
        {"backbone": "resnet18"},
        {"data": "elsewhere"},
        {"memory": "fifo"},
        {"every": 5},
    ],
)
def test_runs_that_differ_in_more_than_the_seed_are_not_pooled(other: dict[str, object]) -> None:
    main = [made("tinyer", seed, EASY) for seed in range(3)] + [made("ncm", 0, EASY)]
    found = Sorted([*main, made("tinyer", 7, HARD, **other)])
    for record in omega.records(found):
        if record["learner"] == "tinyer" and record["n"] == 3:
            assert record["mean"] == pytest.approx(0.9)
        else:
            assert record["n"] == 1  # alone, in a table of its own or of another learner
    cells = [cell for key, cell in found.cells.items() if key.learner == "tinyer"]
    assert sorted(len(cell) for cell in cells) == [1, 3]
    if "validation" in other:
        assert len(omega.records(found)) == 2  # in no table of results at all


def test_runs_without_offline_stay_out_of_a_cell_that_has_it() -> None:
    found = Sorted([made("ncm", 0, EASY), made("ncm", 1, HARD, []), made("ncm", 0, HARD, [])])
    (record,) = omega.records(found)
    assert (record["n"], record["mean"]) == (1, pytest.approx(0.9))
    assert found.left_out == 1
    (alone,) = omega.records(Sorted([made("ncm", 1, HARD, [])]))
    assert (alone["mean"], alone["mu_mean"]) == (None, 0.5)


def test_ranks_compare_learners_on_the_seeds_they_share() -> None:
    """Seeds 5 to 9 are hard, and only one learner met them: its mean is lower, it is better."""
    ours = {seed: 0.80 if seed < 5 else 0.40 for seed in range(10)}
    found = Sorted(
        runs("derpp", ours)
        + runs("tinyer", dict.fromkeys(range(5), 0.75))
        + runs("ncm", dict.fromkeys(range(3), 0.70))
    )
    (bench,) = found.benches
    assert ranked(found.main(bench), "class-instance") == ["derpp", "tinyer", "ncm"]
    places = {r["learner"]: (r["best"], r["place"]) for r in omega.records(found)}
    assert places["derpp"] == (True, "first")


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict"),
    [
        ([0.90, 0.91, 0.92], [0.80, 0.81, 0.82], "first"),
        ([0.80, 0.81, 0.82], [0.90, 0.91, 0.92], "loss"),
        ([0.90, 0.80, 0.70], [0.78, 0.81, 0.80], "tied"),
        ([0.90, 0.91], [0.80, 0.81], "undecided"),
    ],
)
def test_verdicts(ours: list[float], theirs: list[float], verdict: str) -> None:
    found = Sorted(
        runs("verse", dict(enumerate(ours)))
        + runs("derpp", dict(enumerate(theirs)))
        + runs("tinyer", dict.fromkeys(range(5), 0.2))
        + runs("gdumb", dict.fromkeys(range(5), 1.0))  # fine-tunes: no rival
        + runs("verse-no-virtual", dict.fromkeys(range(5), 1.0))  # a variant: no rival
    )
    (mine,) = (v for v in verdicts.verdicts(found) if v["learner"] == "verse")
    assert (mine["rival"], mine["verdict"]) == ("derpp", verdict)
    assert mine["n"] == len(ours)
    assert (mine["p"] is None) == (verdict == "undecided")
    assert verdicts.table([mine]).rows[0][3].text == verdict


def test_the_paper_s_rivals_are_judged_by_themselves() -> None:
    found = Sorted(
        runs("verse", {0: 0.90, 1: 0.91, 2: 0.92})
        + runs("tinyer", dict.fromkeys(range(3), 0.7))
        + runs("slda", dict.fromkeys(range(3), 0.99))  # not in the paper's table
        + runs("verse-no-virtual", dict.fromkeys(range(3), 0.5))
    )
    every, of_paper = verdicts.verdicts(found), verdicts.of_paper(found)
    assert (every[0]["rival"], every[0]["verdict"]) == ("slda", "loss")
    assert [(v["learner"], v["rival"], v["verdict"]) for v in of_paper] == [
        ("verse", "tinyer", "first")]  # fmt: skip
    text = verdicts.summary(every, of_paper)
    assert "verse is first in 0, tied in 0 and beaten in 1 of 1 cells; verse-no-virtual" in text
    assert text.endswith("Against the best rival that the paper compares verse is first in 1, "
                         "tied in 0 and beaten in 0 of 1 cells.")  # fmt: skip


def test_other_budgets_and_settings_are_compared_on_common_seeds() -> None:
    """Only the main runs met the easy seeds 3 and 4: that must not speak for their budget."""
    ours = {0: 0.5, 1: 0.5, 2: 0.5, 3: 1.0, 4: 1.0}
    less = {seed: ours[seed] - 0.1 for seed in range(3)}
    found = Sorted(
        [made("tinyer", seed, [share]) for seed, share in ours.items()]
        + [made("tinyer", seed, [share], capacity="1%") for seed, share in less.items()]
        + [made("tinyer", seed, [share], settings={"lr": 0.3}) for seed, share in less.items()]
        + [made("ncm", seed, [0.9]) for seed in ours]
    )
    (bench,) = found.benches
    budgets, variants = ablations.budgets(found, bench), ablations.variants(found, bench)
    assert budgets is not None and variants is not None
    by_capacity = {r["capacity"]: (r["mean"], r["n"]) for r in budgets.records}
    assert by_capacity == {"4%": (pytest.approx(0.5), 3), "1%": (pytest.approx(0.4), 3)}
    by_change = {r["change"]: (r["mean"], r["n"]) for r in variants.records}
    assert by_change == {"": (pytest.approx(0.5), 3), "capacity = 1%": (pytest.approx(0.4), 3),
                         "lr = 0.3": (pytest.approx(0.4), 3)}  # fmt: skip


def test_bytes_hold_unequal_numbers_of_samples() -> None:
    found = Sorted(
        made(learner, seed, [0.5], capacity=capacity, holds=samples)
        for learner, less, more in (("remind", 47, 2000), ("exstream", 47, 600), ("ncm", 0, 0))
        for seed in range(3)
        for capacity, samples in (("4%", less), ("3MB", more))
    )
    budgets = ablations.budgets(found, found.benches[0])
    assert budgets is not None
    assert budgets.head[1:] == ["4% (47 samples)", "3MB (600–2000 samples)"]


def test_settings_that_benches_differ_in_are_in_their_names() -> None:
    found = Sorted(
        made(learner, seed, [0.5], thin=thin)
        for learner in ("verse", "ncm")
        for seed in range(3)
        for thin in (1, 2)
    )
    listed = omega.records(found)
    names = list(omega.cell_names(listed).values())
    assert len(set(names)) == 2 and all("class-instance" in name for name in names)
    assert omega.overview(listed).head == ["learner", *names, "seeds"]


def test_the_best_rival_is_the_closest_one_on_common_seeds() -> None:
    hard = {0: 0.9, 1: 0.9, 2: 0.9, 3: 0.5, 4: 0.5, 5: 0.5}
    found = Sorted(
        runs("verse", hard)
        # the better mean, on easy seeds only, but further behind VERSE on them
        + runs("tinyer", dict.fromkeys(range(3), 0.80))
        + runs("derpp", {seed: share - 0.05 for seed, share in hard.items()})
        # ahead, but on two seeds: named, not compared
        + runs("ncm", {0: 0.99, 1: 0.98})
    )
    (mine,) = verdicts.verdicts(found)
    assert (mine["rival"], mine["n"], mine["not_compared"]) == ("derpp", 6, ["ncm"])
    assert mine["verdict"] == "undecided"  # ncm may be ahead


def test_first_needs_a_lead_over_everybody() -> None:
    """The closest rival is beaten surely, another one, who varies, is not."""
    found = Sorted(
        runs("verse", {0: 0.90, 1: 0.90, 2: 0.90})
        + runs("derpp", {0: 0.88, 1: 0.88, 2: 0.88})
        + runs("tinyer", {0: 0.95, 1: 0.80, 2: 0.80})
    )
    (mine,) = verdicts.verdicts(found)
    assert (mine["rival"], mine["verdict"]) == ("derpp", "tied")


def test_holm_is_over_the_cells_of_a_learner() -> None:
    both = []
    for order in ("iid", "instance"):
        both += runs("verse", {0: 0.90, 1: 0.91, 2: 0.93}, order=order)
        both += runs("ncm", {0: 0.80, 1: 0.82, 2: 0.80}, order=order)
    listed = verdicts.verdicts(Sorted(both))
    assert len(listed) == 2
    for record in listed:
        assert record["p_holm"] == pytest.approx(min(1, 2 * record["p"]))


def test_one_seed_ties_nobody() -> None:
    found = Sorted([made("derpp", 0, EASY), made("ncm", 0, EASY), made("tinyer", 0, [0.1] * 12)])
    assert {r["place"] for r in omega.records(found)} == {"undecided"}


def test_rendered_data_and_other_backbones_are_not_counted_beside_filmed_data() -> None:
    both = [
        (runs("verse", {0: 0.90, 1: 0.91, 2: 0.93}), runs("ncm", {0: 0.80, 1: 0.82, 2: 0.80})),
        (runs("verse", {0: 0.5, 1: 0.6, 2: 0.5}), runs("ncm", {0: 0.80, 1: 0.82, 2: 0.80})),
    ]
    rendered = [r for side in both[0] for r in side]
    assert all(v["counted"] for v in verdicts.verdicts(Sorted(rendered)))  # nothing else there
    filmed = [replace(r, run=replace(r.run, dataset="folder:eth80")) for s in both[1] for r in s]
    small = [replace(r, run=replace(r.run, dataset="folder:eth80", backbone="resnet18"))
             for r in both[0][0][:2] + both[0][1][:2]]  # fmt: skip
    listed = verdicts.verdicts(Sorted(rendered + filmed + small))
    assert [(v["dataset"], v["backbone"]) for v in listed if v["counted"]] == [
        ("eth80", "efficientnet-lite0")]  # fmt: skip
    assert len(listed) == 3
    assert verdicts.counts(listed).endswith("first in 0, tied in 0 and beaten in 1 of 1 cells.")
    counted = next(v for v in listed if v["counted"])
    assert counted["p_holm"] == counted["p"]


def test_a_cell_says_what_it_cost_and_what_it_was_divided_by() -> None:
    weak = made("tinyer", 0, EASY, [0.7] * 12)  # its gate asks for 0.8
    found = Sorted([replace(weak, learn_seconds=0.5), made("ncm", 0, EASY)])
    by = {r["learner"]: r for r in omega.records(found)}
    assert by["tinyer"]["ms_per_sample"] == 5.0
    assert (by["tinyer"]["memory_samples"], by["tinyer"]["memory_bytes"]) == (20, 4000)
    assert (by["tinyer"]["offline"], by["tinyer"]["gate_passed"]) == (pytest.approx(0.7), False)
    assert (by["ncm"]["offline"], by["ncm"]["gate_passed"]) == (1.0, True)
    assert omega.figure(by["tinyer"]).text.endswith(omega.UNSOUND)
    assert (
        omega.UNSOUND not in omega.figure(by["ncm"]).text + omega.figure(by["tinyer"], "mu_").text
    )
    (bench,) = found.benches
    head = omega.cell_table(found, bench, "class-instance", omega.records(found)).head
    assert head[1:3] == ["Ω_all", "μ_all"]
    assert {"seeds", "ms a sample", "memory, samples", "memory, bytes"} <= set(head)
