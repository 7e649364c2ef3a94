"""Our FeCAM and SLDA beside Avalanche's, on the same features. ``rivals.py`` runs it."""

from __future__ import annotations

import torch
from avalanche.models.fecam import FeCAMClassifier, compute_covariance, compute_means
from avalanche.training import supervised
from differences import apart, differing, report, teach, vectors
from torch import Tensor, nn

from verse.learners import SLDA, FeCAM


def compare_fecam() -> None:
    """Avalanche's classifier with the prototypes of the authors' code: t of the mean of v.

    Where a feature never varies, V₂ is the mean of all entries, and of those that are not zero in
    Avalanche and in the authors' code.
    """
    torch.manual_seed(0)
    y = torch.arange(600) % 6
    centres, scales = torch.rand(6, 16)[y], torch.rand(6, 16)[y] + 0.2
    for dead in (0, 4):
        scales[:, :dead] = 0
        Z, asked = ((scales * (centres + torch.randn(600, 16))).relu() for _ in range(2))
        mine, other = FeCAM(vectors(16), features="input"), FeCAMClassifier()
        teach(mine, Z, y)
        t, means = other.apply_transforms(Z), compute_means(Z, y)
        other.replace_class_cov_dict(other.apply_cov_transforms(compute_covariance(t, y)))
        other.replace_class_means_dict({k: other.apply_transforms(m) for k, m in means.items()})
        scores, theirs = mine.logits(asked), other(asked)
        what, limits = f"{dead} of 16 features zero", (None, None) if dead else (1e-4, 0.0)
        report("fecam", f"scores, {what}", apart(2 * scores, theirs), limits[0])
        report(
            "fecam", f"share of answers that differ, {what}", differing(scores, theirs), limits[1]
        )
        other.replace_class_means_dict(compute_means(t, y))
        if not dead:
            report("fecam", "the same, t before the mean", differing(scores, other(asked)))


def compare_slda() -> None:
    """Theirs weighs a deviation by t/(t+1) with the count of all samples, ours by n/(n+1) with that
    of the class: equal for one class, and once their weights are put in."""
    torch.manual_seed(0)
    classes, d = 10, 32
    y = torch.arange(2000) % classes
    centres, mix = 0.7 * torch.randn(classes, d)[y] + 1, torch.randn(d, d) / d**0.5
    Z, asked = (centres + torch.randn(len(y), d) @ mix for _ in range(2))
    orders = {
        "one class": torch.nonzero(y == 0)[:, 0],
        "50 mixed samples": torch.arange(50),
        "2000 mixed samples": torch.arange(2000),
        "2000 by class": y.argsort(stable=True),
    }
    for name, order in orders.items():
        mine = SLDA(vectors(d))
        other = supervised.StreamingLDA(
            slda_model=nn.Identity(),
            criterion=None,
            input_size=d,
            num_classes=classes,
            evaluator=None,
        )
        teach(mine, Z[order], y[order])
        for z, label in zip(Z[order], y[order], strict=True):
            other.fit(z[None], label[None])
        covariance, theirs = mine.moments.scatter[0] / len(order), other.Sigma
        if name == "one class":
            report("slda", f"covariance, {name}", apart(covariance, theirs), 1e-5)
            continue
        scores, answers = mine.logits(asked), other.predict(asked)
        weighted = covariance + weigh_anew(Z[order], y[order])
        other.Sigma, other.prev_num_updates = covariance, -1
        again = other.predict(asked)
        report("slda", f"class means, {name}", apart(mine.moments.means[:, 0], other.muK), 1e-5)
        report("slda", f"covariance, {name}", apart(covariance, theirs))
        report("slda", f"covariance by their weights, {name}", apart(weighted, theirs), 1e-5)
        report("slda", f"scores from one covariance, {name}", apart(scores, again), 1e-3)
        report("slda", f"share of answers that differ, {name}", differing(scores, answers))


def weigh_anew(Z: Tensor, y: Tensor) -> Tensor:
    """What their weights add to our covariance."""
    means, counts = torch.zeros(int(y.max()) + 1, Z.shape[1]), [0] * (int(y.max()) + 1)
    added = torch.zeros(Z.shape[1], Z.shape[1])
    for t, (z, label) in enumerate(zip(Z, y.tolist(), strict=True)):
        n, gap = counts[label], z - means[label]
        added += (t / (t + 1) - n / (n + 1)) * gap.outer(gap)
        means[label] += gap / (n + 1)
        counts[label] += 1
    return added / len(y)
