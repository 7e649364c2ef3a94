"""VCL: closed forms against torch.distributions and autograd, the chain of priors, the coreset."""

from __future__ import annotations

import copy

import pytest
import torch
from torch.distributions import Normal, kl_divergence
from torch.nn.functional import cross_entropy

from tests.learners.reference import mixed
from verse.checks import small_network, small_stream
from verse.kernels.gaussian_head import expected_cross_entropy, kl, kl_gradient, log_predictive
from verse.learners import VCL, build
from verse.memory import ClassBalanced
from verse.types import BadSetting


def layers(seed: int = 0, n: int = 3, d: int = 4) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(n, d + 1, generator=generator).double() for _ in range(4)]


def test_kl_is_the_closed_form() -> None:
    mean, log_var, prior_mean, prior_log_var = layers()
    expected = kl_divergence(
        Normal(mean, (log_var / 2).exp()), Normal(prior_mean, (prior_log_var / 2).exp())
    ).sum()
    torch.testing.assert_close(kl(mean, log_var, prior_mean, prior_log_var), expected)
    assert float(kl(mean, log_var, mean, log_var)) == pytest.approx(0, abs=1e-12)


def test_kl_gradient_is_autograds() -> None:
    mean, log_var, *prior = layers()
    leaves = mean.requires_grad_(), log_var.requires_grad_()
    expected = torch.autograd.grad(kl(*leaves, *prior), leaves)
    torch.testing.assert_close(kl_gradient(mean.detach(), log_var.detach(), *prior), expected)


def test_expected_cross_entropy_gradients_are_autograds() -> None:
    torch.manual_seed(0)
    mean, log_var, *_ = layers()
    e, y = torch.randn(5, 4).double(), torch.tensor([0, 2, 1, 1, 0])
    noise = torch.randn(7, 5, 3).double()
    leaves = e.requires_grad_(), mean.requires_grad_(), log_var.requires_grad_()
    one = torch.cat((e, torch.ones(5, 1).double()), 1)
    s = one @ mean.t() + (one**2 @ log_var.exp().t()).sqrt() * noise
    expected = torch.stack([cross_entropy(each, y) for each in s]).mean()
    detached = [leaf.detach() for leaf in leaves]
    value, *grads = expected_cross_entropy(detached[0], y, detached[1], detached[2], noise)
    torch.testing.assert_close(value, expected.detach())
    torch.testing.assert_close(tuple(grads), torch.autograd.grad(expected, leaves))


def test_scores_have_the_distribution_of_drawn_weights() -> None:
    """The local form against drawing 20,000 weight matrices: same predictive probabilities."""
    generator = torch.Generator().manual_seed(0)
    mean, log_var, *_ = (t.float() for t in layers())
    e = torch.randn(2, 4, generator=generator)
    one = torch.cat((e, torch.ones(2, 1)), 1)
    W = mean + (log_var / 2).exp() * torch.randn(20_000, 3, 5, generator=generator)
    expected = torch.softmax(torch.einsum("bd,knd->kbn", one, W), 2).mean(0)
    noise = torch.randn(20_000, 3, generator=generator)
    torch.testing.assert_close(
        log_predictive(e, mean, log_var, noise).exp(), expected, rtol=0, atol=0.01
    )


def test_one_step_is_descent_on_the_elbo() -> None:
    """μ, log σ² and the body move by the gradient of E_q[CE] + KL / N, all by autograd."""
    F, N, lr, lr_var = small_network(), 20, 0.05, 0.7
    learner = VCL(F, N=N, lr=lr, lr_var=lr_var, clip=None, trigger="every:6")
    stream = mixed(small_stream(F))
    for z, y in stream[:20]:
        learner.learn_one(z, y)
    z, label = stream[20]
    y = learner.labels.index(label)
    dice = copy.deepcopy(learner.random)
    noise = dice.normal_tensor((10, 1, 3)).double()
    body = copy.deepcopy(F.body).double().requires_grad_(True)
    names, weights = zip(*body.named_parameters(), strict=True)
    with torch.no_grad():
        for name, weight in zip(names, weights, strict=True):
            weight.copy_(learner.theta.layout.views(learner.theta.data)[f"body.{name}"])
    mean = learner.mean.double().requires_grad_()
    log_var = learner.log_var.double().requires_grad_()
    e = body(z[None].double())
    one = torch.cat((e, torch.ones(1, 1).double()), 1)
    s = one @ mean.t() + (one**2 @ log_var.exp().t()).sqrt() * noise
    data = cross_entropy(s[:, 0], torch.full((10,), y))
    prior = learner.prior_mean.double(), learner.prior_log_var.double()
    value = data + kl(mean, log_var, *prior) / N
    by_mean, by_log_var, *by_body = torch.autograd.grad(value, (mean, log_var, *weights))
    learner.learn_one(z, label)
    torch.testing.assert_close(
        learner.mean.double(), (mean - lr * by_mean).detach(), rtol=0, atol=1e-5
    )
    torch.testing.assert_close(
        learner.log_var.double(), (log_var - lr_var * by_log_var).detach(), rtol=0, atol=1e-5
    )
    for name, weight, gradient in zip(names, weights, by_body, strict=True):
        moved = learner.theta.layout.views(learner.theta.data)[f"body.{name}"].double()
        torch.testing.assert_close(moved, (weight - lr * gradient).detach(), rtol=0, atol=1e-5)


def test_posterior_becomes_prior_but_not_for_a_class_that_just_arrived() -> None:
    F = small_network("linear")
    learner = VCL(F, trigger="class-change")
    stream = small_stream(F)
    for z, y in stream[:24]:
        learner.learn_one(z, y)
    before = learner.mean, learner.log_var
    learner.learn_one(*stream[24])  # a third class
    assert torch.equal(learner.prior_mean[:2], before[0])
    assert torch.equal(learner.prior_log_var[:2], before[1])
    assert torch.equal(learner.prior_mean[2], torch.zeros(7))
    assert torch.equal(learner.prior_log_var[2], torch.zeros(7))


def test_what_was_seen_often_becomes_more_certain() -> None:
    """The data pull variances of used weights down, relative to the prior's push."""
    F = small_network("linear")
    learner = VCL(F, lr_var=5.0)
    for z, y in mixed(small_stream(F)) * 3:
        learner.learn_one(z * torch.tensor([9.0, 9.0, 9.0, 0.0, 0.0, 0.0]), y)
    used, unused = learner.log_var[:, :3].mean(), learner.log_var[:, 3:6].mean()
    assert float(used) < float(unused)


def test_a_frozen_body_stays() -> None:
    F = small_network()
    learner = VCL(F, plastic_body=False)
    for z, y in mixed(small_stream(F)):
        learner.learn_one(z, y)
    views = learner.theta.layout.views(learner.theta.data)
    for name, parameter in F.body.named_parameters():
        assert torch.equal(views[f"body.{name}"], parameter)


def test_answers_do_not_depend_on_the_company_of_a_question() -> None:
    F = small_network()
    learner = VCL(F)
    stream = mixed(small_stream(F))
    for z, y in stream:
        learner.learn_one(z, y)
    Z = torch.stack([z for z, _ in stream])
    one, many = learner.predict_proba_many(Z[:1]), learner.predict_proba_many(Z)
    torch.testing.assert_close(one, many[:1], rtol=1e-4, atol=1e-6)


def test_coreset_predicts_after_consolidate_and_is_dropped_by_the_next_sample() -> None:
    F = small_network("linear")
    stream = [(4 * z, y) for z, y in small_stream(F)]  # class after class: the first is forgotten
    plain = VCL(F, lr=0.05)
    cored = build("coreset-vcl", F, ClassBalanced(24), lr=0.05, epochs=20)
    for z, y in stream:
        plain.learn_one(z, y)
        cored.learn_one(z, y)
    Z, Y = torch.stack([z for z, _ in stream]), [y for _, y in stream]
    assert torch.equal(plain.theta.data, cored.theta.data)
    assert torch.equal(plain.predict_proba_many(Z), cored.predict_proba_many(Z))
    q = cored.theta.data.clone(), cored.log_var.clone()
    cored.consolidate()
    assert torch.equal(q[0], cored.theta.data) and torch.equal(q[1], cored.log_var)

    def right(learner) -> int:
        return sum(a == b for a, b in zip(learner.predict_many(Z), Y, strict=True))

    assert right(cored) > right(plain)
    cored.learn_one(*stream[0])
    assert cored.tuned is None


def test_a_coreset_needs_a_memory() -> None:
    with pytest.raises(BadSetting, match="memory"):
        VCL(small_network(), coreset_epochs=5)
