"""Bayesian networks: draws from the posterior of the weights by HMC (Neal 2011) or NUTS (Hoffman and Gelman 2014).

    for each chain
        plain training from its own first weights; the sampler starts where that ends
        warm-up draws adapt the integrator's step; then draws are kept

The posterior is that of the cross entropy of all training inputs and a normal prior. The predictor is the mean of the
logits of draws that are evenly spread over all chains, as one network: attacks, radii, reaches and guarantees take it.

A weight's own mixing says little, as networks are the same after a permutation of their units. R̂ and the effective
sample size are those of what is used: the probabilities of held-out inputs' labels, and the energy.
"""

from __future__ import annotations

import copy
import math
import time
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from radii._torch import Tensor, functional, torch
from radii.errors import InputError, ToolMissing, TrainingError
from radii.models.merge import mean_of
from radii.train import checkpoint
from radii.train.loop import Epoch, Tell, fit, torch_threads
from radii.train.recipe import BayesPart
from radii.train.shi import initialise
from radii.train.task import TrainingTask

CHAIN = "chain.pt"
TOLD = 10  # lines of progress per chain
WATCHED = 100  # held-out inputs whose probabilities are followed
CONVERGED = 1.1  # R̂ above this says that the chains have not met


@dataclass(frozen=True)
class Diagnostics:
    """What the draws are worth; R̂ is near 1 where chains agree, and None where there are too few draws to tell."""

    sampler: str
    chains: int
    draws: int  # of each chain
    networks: int  # of the predictor
    acceptance: tuple[float, ...]  # share of proposals that were accepted, per chain (NUTS: draws that moved)
    divergences: int
    step: tuple[float, ...]  # of the integrator, per chain
    r_hat_energy: float | None
    r_hat: float | None  # the largest over held-out inputs
    effective: float | None  # the least effective sample size over held-out inputs
    effective_energy: float | None

    def sentence(self) -> str:
        """All of it in words, with a warning where the chains have not met."""
        shares = ", ".join(f"{100 * one:.0f} %" for one in self.acceptance)
        text = (
            f"{self.sampler.upper()}: {self.chains} chains of {self.draws} draws, accepted {shares}, "
            f"{self.divergences} divergent; R̂ {_said(self.r_hat)} (energy {_said(self.r_hat_energy)}), "
            f"effective sample size {_said(self.effective, 0)} (energy {_said(self.effective_energy, 0)}) "
            f"of {self.chains * self.draws}"
        )
        if self.r_hat is None or not self.r_hat <= CONVERGED:
            text += f"; not converged (R̂ above {CONVERGED}): draw more, warm up longer or take smaller steps"
        return text


@dataclass(frozen=True, eq=False)
class Posterior:
    """The merged predictor of a sampled posterior, how it came about, and what its draws are worth."""

    model: torch.nn.Module
    history: list[Epoch]
    diagnostics: Diagnostics


def sample(task: TrainingTask, folder: Path | None = None, resume: bool = False, tell: Tell | None = None) -> Posterior:
    """Draws networks from the posterior of a task; with a folder every finished chain is kept there and found again."""
    part = task.recipe.bayes
    assert part is not None
    _pyro()
    chains, history = [], list[Epoch]()
    total = part.chains * (task.recipe.epochs + TOLD)
    for k in range(part.chains):
        place = None if folder is None else folder / f"chain-{k}"
        if place is not None:
            place.mkdir(parents=True, exist_ok=True)

        def told(row: Epoch, _: int) -> None:
            history.append(replace(row, epoch=len(history) + 1))
            if tell is not None:
                tell(history[-1], total)

        chains.append(_chain(task, part, k, place, resume, told))
    kept = torch.cat([one["networks"] for one in chains])
    module = mean_of([_with(task.model, weights) for weights in kept], task.classes, kept.dtype)
    return Posterior(module.eval(), history, diagnosed(part, chains))


def _chain(task: TrainingTask, part: BayesPart, k: int, place: Path | None, resume: bool, tell: Tell) -> dict[str, Any]:
    """One chain: what it drew and how; a finished one is read again."""
    recipe = task.recipe.model_copy(update={"seed": task.recipe.seed + 1000 * k, "keep": "last"})
    one = replace(task, recipe=recipe, model=_fresh(task, recipe.seed) if k else copy.deepcopy(task.model))
    file = None if place is None else place / CHAIN
    question = {"recipe": recipe.model_dump_json(exclude={"output"}), "data": task.fingerprint}
    if file is not None and resume and file.exists():
        found = checkpoint.load(file)
        if {key: found[key] for key in question} != question:
            raise InputError(
                f"{file}: expected a chain of this recipe and data, got one of another; use another output"
            )
        for row in found["history"]:
            tell(Epoch(**row), 0)
        return found
    rows: list[Epoch] = []

    def told(row: Epoch, count: int) -> None:
        rows.append(row)
        tell(row, count)

    done = fit(one, place, resume, told)
    for row in done[: len(done) - len(rows)]:  # epochs of an earlier start, which `fit` does not tell again
        tell(row, 0)
    drawn = _draw(one, part, networks_of(part, k), lambda row: tell(row, 0), done)
    found = {**question, **drawn}
    if file is not None:
        checkpoint.save(file, found)
    return found


def networks_of(part: BayesPart, k: int) -> int:
    """How many networks of the predictor come from chain k."""
    return part.networks // part.chains + (k < part.networks % part.chains)


def _draw(task: TrainingTask, part: BayesPart, wanted: int, tell: Any, done: list[Epoch]) -> dict[str, Any]:
    chosen = {round((j + 1) * part.draws / wanted) - 1 for j in range(wanted)} if wanted else set[int]()
    watched = task.validation.at(torch.arange(min(WATCHED, len(task.validation))))
    potential = Potential(task, part.prior)
    kept, energies, seen, rows = [], [], [], list(done)
    with torch_threads(task.recipe.threads), torch.random.fork_rng(devices=[]):
        torch.manual_seed(task.recipe.seed)
        kernel = _kernel(part, potential)
        start = torch.nn.utils.parameters_to_vector(task.model.parameters()).detach()
        kernel.initial_params = point = {"weights": start}
        kernel.setup(part.warmup)
        clock, moved, last = time.process_time(), 0, start
        for n in range(part.warmup + part.draws):
            point = kernel.sample(point)
            weights = point["weights"].detach()
            energy = potential.energy(weights)
            if not math.isfinite(energy):
                raise TrainingError(f"bayes: draw {n + 1} has the energy {energy}; make the step smaller")
            if n >= part.warmup:
                moved += not torch.equal(weights, last)
                energies.append(energy)
                seen.append(potential.labels(weights, watched.x, watched.y))
                if n - part.warmup in chosen:
                    kept.append(weights.clone())
            last = weights
            if (n + 1) * TOLD // (part.warmup + part.draws) > n * TOLD // (part.warmup + part.draws):
                rows.append(
                    _row(task, potential, weights, energy, float(kernel.step_size), time.process_time() - clock)
                )
                tell(rows[-1])
                clock = time.process_time()
        divergences = len(kernel.diagnostics()["divergences"])
    if not moved:
        raise TrainingError(
            f"bayes: expected draws that are accepted, got none of {part.draws} with the step "
            f"{float(kernel.step_size):.2g}; make the step smaller, or leave adapt on with a warm-up"
        )
    return {
        "networks": torch.stack(kept) if kept else start.new_zeros((0, len(start))),
        "energies": torch.tensor(energies, dtype=torch.float64),
        "seen": torch.stack(seen),
        "acceptance": moved / part.draws,
        "divergences": divergences,
        "step": float(kernel.step_size),
        "history": [asdict(row) for row in rows],
    }


class Potential:
    """The negative log posterior of flat weights, up to a constant: the potential energy of the sampler."""

    def __init__(self, task: TrainingTask, prior: float) -> None:
        self.task, self.precision = task, 1 / prior**2
        self.parts = [(name, one.shape, one.numel()) for name, one in task.model.named_parameters()]

    def __call__(self, point: dict[str, Tensor]) -> Tensor:
        weights, train = point["weights"], self.task.train
        lost = functional.cross_entropy(self.outputs(weights, train.x), train.y, reduction="sum")
        return lost + 0.5 * self.precision * weights.square().sum()

    def outputs(self, weights: Tensor, x: Tensor) -> Tensor:
        """The logits of a network with these weights."""
        pieces = torch.split(weights, [size for _, _, size in self.parts])
        named = {name: piece.reshape(shape) for (name, shape, _), piece in zip(self.parts, pieces)}
        found: Tensor = torch.func.functional_call(self.task.model, named, (x,))
        return found

    def energy(self, weights: Tensor) -> float:
        """Its value, without a gradient."""
        with torch.no_grad():
            return float(self({"weights": weights}))

    def labels(self, weights: Tensor, x: Tensor, y: Tensor) -> Tensor:
        """The probability of each input's label."""
        with torch.no_grad():
            return self.outputs(weights, x).softmax(1).gather(1, y[:, None])[:, 0]


def _row(
    task: TrainingTask, potential: Potential, weights: Tensor, energy: float, step: float, seconds: float
) -> Epoch:
    """A line of the history: energy per input as the loss, the integrator's step as the rate, one draw's accuracies."""
    with torch.no_grad():
        right, held = (
            float((potential.outputs(weights, part.x).argmax(1) == part.y).float().mean())
            for part in (task.train, task.validation)
        )
    return Epoch(0, 0.0, step, energy / len(task.train), right, held, None, None, seconds)


def diagnosed(part: BayesPart, chains: list[dict[str, Any]]) -> Diagnostics:
    """R̂ and effective sample sizes of the draws of all chains."""
    energies = torch.stack([one["energies"] for one in chains])[..., None]
    seen = torch.stack([one["seen"].double() for one in chains])
    r_energy, n_energy = _mixing(energies)
    r_seen, n_seen = _mixing(seen)
    return Diagnostics(
        part.sampler,
        part.chains,
        part.draws,
        part.networks,
        tuple(one["acceptance"] for one in chains),
        sum(one["divergences"] for one in chains),
        tuple(one["step"] for one in chains),
        r_energy,
        r_seen,
        n_seen,
        n_energy,
    )


def _mixing(values: Tensor) -> tuple[float | None, float | None]:
    """The largest split R̂ and the least effective sample size over columns of (chains, draws, columns) that vary."""
    stats: Any = import_module("pyro.ops.stats")
    spread = values.flatten(0, 1).std(0)
    values = values[:, :, spread > 1e-12]
    if not values.shape[2]:
        return None, None
    r_hat, size = stats.split_gelman_rubin(values), stats.effective_sample_size(values)
    known = [one[torch.isfinite(one)] for one in (r_hat, size)]
    # A column that never moves within a chain has no R̂: its chains have not met.
    worst = math.inf if len(known[0]) < len(r_hat) else float(known[0].max())
    return worst, float(known[1].min()) if len(known[1]) else None


def _kernel(part: BayesPart, potential: Potential) -> Any:
    samplers: Any = import_module("pyro.infer.mcmc")
    options: dict[str, Any] = {"potential_fn": potential, "step_size": part.step, "adapt_mass_matrix": False}
    options["adapt_step_size"] = part.adapt and part.warmup > 0
    if part.sampler == "nuts":
        return samplers.NUTS(max_tree_depth=part.depth, **options)
    # So many steps per draw, however small the step becomes: the cost of a draw is known.
    fixed: Any = type("Fixed", (samplers.HMC,), {"num_steps": part.steps})
    return fixed(**options)


def _fresh(task: TrainingTask, seed: int) -> torch.nn.Module:
    """First weights of their own for every chain, so that R̂ can see chains that do not meet."""
    made = copy.deepcopy(task.model)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for part in made.modules():
            reset: Any = getattr(part, "reset_parameters", None)
            if reset is not None:
                reset()
        if task.recipe.architecture.initialisation == "ibp":
            initialise(made)
    return made


def _with(model: torch.nn.Module, weights: Tensor) -> torch.nn.Module:
    made = copy.deepcopy(model)
    torch.nn.utils.vector_to_parameters(weights, made.parameters())
    return made


def _said(value: float | None, digits: int = 2) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _pyro() -> None:
    if find_spec("pyro") is None:
        raise ToolMissing("pyro", "pip install 'radii[bayes]'")
