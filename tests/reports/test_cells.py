"""What is pooled and what is not; who is ranked before whom; what tables say of a cell."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.reports.made import made
from verse.experiments.result import Result
from verse.reports import offline, scores
from verse.reports.cells import SortedResults, rank_learners

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
    found = SortedResults([*main, made("tinyer", 7, HARD, **other)])
    for record in scores.records(found):
        if record["learner"] == "tinyer" and record["n"] == 3:
            assert record["mean"] == pytest.approx(0.9)
        else:
            assert record["n"] == 1  # alone, in a table of its own or of another learner
    cells = [cell for key, cell in found.cells.items() if key.learner == "tinyer"]
    assert sorted(len(cell) for cell in cells) == [1, 3]
    if "validation" in other:
        assert len(scores.records(found)) == 2  # in no table of results at all


def test_runs_without_a_reference_count_for_accuracy_and_not_for_omega() -> None:
    found = SortedResults(
        [made("ncm", 0, EASY), made("ncm", 1, HARD, []), made("ncm", 0, HARD, [])]
    )
    (record,) = scores.records(found)
    assert (record["n"], record["mu_all"]) == (2, pytest.approx(0.7))
    assert (record["omega_n"], record["mean"]) == (1, pytest.approx(0.9))
    (alone,) = scores.records(SortedResults([made("ncm", 1, HARD, [])]))
    assert (alone["mean"], alone["paper_mean"], alone["omega_n"]) == (None, None, 0)
    assert alone["mu_mean"] == 0.5


def test_ranks_compare_learners_on_the_seeds_they_share() -> None:
    """Seeds 5 to 9 are hard, and only one learner met them: its mean is lower, it is better."""
    ours = {seed: 0.80 if seed < 5 else 0.40 for seed in range(10)}
    found = SortedResults(
        runs("derpp", ours)
        + runs("tinyer", dict.fromkeys(range(5), 0.75))
        + runs("ncm", dict.fromkeys(range(3), 0.70))
    )
    (bench,) = found.benches
    assert rank_learners(found.main(bench), "class-instance") == ["derpp", "tinyer", "ncm"]
    places = {r["learner"]: (r["best"], r["place"]) for r in scores.records(found)}
    assert places["derpp"] == (True, "first")


def test_settings_that_benches_differ_in_are_in_their_names() -> None:
    found = SortedResults(
        made(learner, seed, [0.5], thin=thin)
        for learner in ("verse", "ncm")
        for seed in range(3)
        for thin in (1, 2)
    )
    listed = scores.records(found)
    names = list(scores.cell_names(listed).values())
    assert len(set(names)) == 2 and all("class-instance" in name for name in names)
    assert len(scores.ranks(listed).head) == 2 + 2


@pytest.mark.parametrize(("rivals", "place"), [(1, "first"), (5, "tied")])
def test_who_is_first_among_many_is_judged_with_their_number(rivals: int, place: str) -> None:
    names = ("tinyer", "ncm", "mir", "gem", "fifo")[:rivals]
    theirs = [run for name in names for run in runs(name, dict.fromkeys(range(3), 0.5))]
    found = SortedResults(runs("derpp", {0: 0.70, 1: 0.75, 2: 0.65}) + theirs)  # p is 0.02
    assert {r["learner"]: r["place"] for r in scores.records(found)}["derpp"] == place


def test_a_hard_ordering_that_few_ran_does_not_change_the_order_of_rows() -> None:
    found = SortedResults(
        runs("derpp", {0: 0.9})
        + runs("derpp", {0: 0.3}, order="instance")
        + runs("tinyer", {0: 0.8})
    )
    assert scores.competitors(found, found.benches[0]) == ["derpp", "tinyer"]


def test_places_are_among_the_methods_that_ran_everywhere() -> None:
    right = {"derpp": 0.9, "mir": 0.8, "gem": 0.7, "tinyer": 0.6}
    listed = scores.records(
        SortedResults(
            made(learner, seed, [share], dataset=data)
            for data in ("eth80", "asl")
            for learner, share in right.items()
            for seed in range(3)
            if data == "eth80" or learner in ("derpp", "tinyer")
        )
    )
    table = scores.ranks(listed)
    found = {row[0].text: [cell.text for cell in row[2:]] for row in table.rows}
    head = [name.partition(",")[0] for name in table.head[2:]]
    assert list(found) == ["derpp", "tinyer", "mir", "gem"]
    assert found["tinyer"] == ["2.0", "2.0"]  # not 4.0 where more methods ran
    assert dict(zip(head, found["gem"], strict=True)) == {"asl": "–", "eth80": "2.0"}


def test_one_seed_ties_nobody() -> None:
    found = SortedResults(
        [made("derpp", 0, EASY), made("ncm", 0, EASY), made("tinyer", 0, [0.1] * 12)]
    )
    assert {r["place"] for r in scores.records(found)} == {"undecided"}


def test_a_cell_says_what_it_cost_and_what_it_was_divided_by() -> None:
    weak = made("tinyer", 0, EASY, [0.7] * 12)  # its gate asks for 0.8
    found = SortedResults([replace(weak, learn_seconds=0.5), made("ncm", 0, EASY)])
    by = {r["learner"]: r for r in scores.records(found)}
    assert by["tinyer"]["ms_per_sample"] == 5.0
    assert (by["tinyer"]["memory_samples"], by["tinyer"]["memory_bytes"]) == (20, 4000)
    assert (by["tinyer"]["offline"], by["tinyer"]["gate_passed"]) == (pytest.approx(0.7), False)
    assert (by["ncm"]["offline"], by["ncm"]["gate_passed"]) == (1.0, True)
    (bench,) = found.benches
    ratios = scores.omega_table(found, bench, scores.records(found))
    assert ratios is not None
    marked = {row[0].text: row[1].text.endswith(scores.UNSOUND) for row in ratios.rows}
    assert marked == {"tinyer": True, "ncm": False}
    head = scores.cell_table(found, bench, "class-instance", scores.records(found)).head
    assert head[1] == "μ_all" and {"Ω_all", "paper's Ω", "seeds", "ms a sample"} <= set(head)


@pytest.mark.parametrize(
    ("bound", "told"),
    [(0.7, "failed at 2 of 2 events: Ω is too high there"), (1.0, "passed at all 2 events")],
)
def test_the_gate_says_where_it_failed(bound: float, told: str) -> None:
    found = SortedResults([made("tinyer", 0, EASY, [bound] * 12)])
    table = offline.tabulate_offline(found, found.benches[0])
    assert table is not None
    assert table.rows[0][table.head.index("gate")].text == told


def test_without_offline_nothing_is_divided() -> None:
    found = SortedResults([made("tinyer", seed, EASY, []) for seed in range(3)])
    (bench,) = found.benches
    listed = scores.records(found)
    assert scores.omega_table(found, bench, listed) is None
    assert "Ω_all" not in scores.cell_table(found, bench, "class-instance", listed).head
    assert (
        scores.tabulate_scores(found, bench, listed).rows[-1][0].text == "tinyer"
    )  # no row of dashes


def test_what_can_be_reached_is_below_the_learners() -> None:
    shown = [
        replace(r, events=tuple(replace(e, reachable=600) for e in r.events))
        for r in runs("ncm", {0: 0.4, 1: 0.5}, order="instance")
    ]
    found = SortedResults(shown)
    (record,) = scores.records(found)
    assert record["ceiling"] == 0.5
    rows = scores.tabulate_scores(found, found.benches[0], [record]).rows
    assert [cell.text for cell in rows[-1]][:2] == ["Ceiling (classes shown)", "0.500"]


def test_two_omegas() -> None:
    better = [
        replace(
            r,
            offline=tuple(
                replace(b, best="lda", best_by_video=[[v, n, n] for v, _, n in b.by_video])
                for b in r.offline
            ),
        )
        for r in (made("ncm", seed, [0.5] * 4, [0.8] * 4) for seed in range(3))
    ]
    (record,) = scores.records(SortedResults(better))
    assert (record["mean"], record["paper_mean"]) == (pytest.approx(0.5), pytest.approx(0.625))
    assert record["reference"] == "lda" and record["mu_all"] == record["mu_mean"]
