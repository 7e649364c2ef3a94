"""LwF: the distillation's gradient, what the teacher is asked, and a run by autograd."""

from __future__ import annotations

import copy

import torch
from torch.nn.functional import cross_entropy, kl_div, log_softmax, softmax

from tests.learners.reference import Reference, flat_of
from verse.checks import small_network, small_stream
from verse.kernels.distillation import tempered_cross_entropy
from verse.learners import LwF


def test_distillation_gradient_is_autograds() -> None:
    torch.manual_seed(0)
    target, scores = torch.randn(4, 3), torch.randn(4, 5, requires_grad=True)
    for T in (1.0, 2.0, 5.0):
        value, grad = tempered_cross_entropy(target, T, weight=0.5)(scores.detach())
        # KL differs from the cross-entropy by the teacher's entropy, which has no gradient
        p = softmax(target / T, 1)
        expected = 0.5 * kl_div(log_softmax(scores[:, :3] / T, 1), p, reduction="batchmean")
        entropy = -(p * p.log()).sum(1).mean()
        torch.testing.assert_close(value, expected.detach() + 0.5 * entropy)
        torch.testing.assert_close(grad, torch.autograd.grad(expected, scores)[0])


def test_outputs_the_teacher_lacks_take_no_part() -> None:
    _, grad = tempered_cross_entropy(torch.randn(2, 2), 2.0)(torch.randn(2, 4))
    assert torch.equal(grad[:, 2:], torch.zeros(2, 2))


def test_a_run_by_autograd() -> None:
    """The first triggers fall on the arrival of a class, which the teacher must not know."""
    alpha, T, lr = 0.7, 2.0, 0.05
    F = small_network()
    ours = LwF(F, alpha=alpha, T=T, trigger="every:12", lr=lr, clip=None)
    ref = Reference(F, classes=3)
    teacher = None
    for t, (z, label) in enumerate(small_stream(F)):
        known = ref.n
        if t and t % 12 == 0:
            teacher = (copy.deepcopy(ref), known)
        y = ref.welcome(label)
        s = ref.scores(z[None])
        loss = cross_entropy(s, torch.tensor([y]))
        if teacher is not None:
            net, k = teacher
            p = softmax(net.scores(z[None]).detach()[:, :k] / T, 1)
            loss = loss - alpha * (p * log_softmax(s[:, :k] / T, 1)).sum()
        ref.move(-lr * ref.gradient(loss))
        ours.learn_one(z, label)
    assert ours.known == 2 and teacher is not None
    torch.testing.assert_close(flat_of(ours.theta, 3), ref.flat, rtol=1e-3, atol=1e-5)


def test_without_distillation_it_is_fine_tuning() -> None:
    from verse.learners import FineTune

    F = small_network()
    ours, plain = LwF(F, alpha=0.0, trigger="every:5"), FineTune(F)
    for z, y in small_stream(F):
        ours.learn_one(z, y)
        plain.learn_one(z, y)
    torch.testing.assert_close(ours.theta.data, plain.theta.data, rtol=0, atol=1e-7)
