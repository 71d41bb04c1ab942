"""The training loop: epochs of steps, accuracies after each epoch, a checkpoint, and what stops it.

    for each epoch
        for each batch, in an order drawn from the run's own generator
            ε grows along its ramp; the method gives the losses; weights step down their gradient
        batch norm's statistics are estimated again on all training inputs
        accuracies on held-out inputs are recorded, and everything is written to the checkpoint

Random numbers come from one generator that checkpoints keep, so that a run that was killed ends in the same weights.
"""

from __future__ import annotations

import ast
import math
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from radii._torch import Tensor, torch
from radii.errors import InputError, TrainingError
from radii.train import checkpoint
from radii.train.balance import Balance
from radii.train.evaluate import accuracies, estimate_statistics
from radii.train.from_torch import read
from radii.train.methods.base import State
from radii.train.recipe import OptimiserPart, Recipe
from radii.train.task import TrainingTask

CHECKPOINT = "checkpoint.pt"
CHANCE = 1.3  # times the share of the most common class: as good as guessing
LEARNT = 2.5  # times that share: a network that was this good and guesses again has collapsed


@dataclass(frozen=True, slots=True)
class Epoch:
    """One line of a run's history; accuracies are shares of held-out inputs, at the evaluation's ε."""

    epoch: int
    epsilon: float  # of the method, at the end of the epoch
    learning_rate: float
    loss: float
    robust: float  # share of training inputs that were right under attack, or certified, while training
    clean: float
    attacked: float | None
    certified: float | None
    seconds: float  # of CPU time


Tell = Callable[[Epoch, int], None]  # called with each finished epoch and how many there are


def fit(task: TrainingTask, folder: Path | None = None, resume: bool = False, tell: Tell | None = None) -> list[Epoch]:
    """Trains the task's model in place and gives the history; with a folder, every epoch ends with a checkpoint.

    A run that diverges ends with `TrainingError`; the checkpoint is then that of the last good epoch.
    """
    with torch_threads(task.recipe.threads), torch.random.fork_rng(devices=[]):
        run = _Run.of(task)
        file = None if folder is None else folder / CHECKPOINT
        if file is not None and resume and file.exists():
            run.restore(checkpoint.load(file), file)
        for epoch in range(len(run.history), task.recipe.epochs):
            row = run.epoch(epoch)
            run.history.append(row)
            run.judge(row, file)
            if file is not None:
                checkpoint.save(file, run.state())
            if tell is not None:
                tell(row, task.recipe.epochs)
        if task.recipe.keep == "best" and run.best is not None:
            task.model.load_state_dict(run.best)
        task.model.eval()
        return run.history


@dataclass(eq=False)
class _Run:
    """A run between two epochs: everything that a checkpoint keeps."""

    task: TrainingTask
    optimiser: torch.optim.Optimizer
    state_of: State
    balance: Balance | None
    history: list[Epoch]
    best: dict[str, Any] | None = None
    score: float = -1.0

    @staticmethod
    def of(task: TrainingTask) -> _Run:
        recipe = task.recipe
        generator = torch.Generator().manual_seed(recipe.seed)
        torch.manual_seed(recipe.seed)  # for modules with random numbers of their own, such as dropout
        balance = None if recipe.balance is None else Balance(recipe.balance, task.classes)
        steps = optimiser(task.model, recipe.optimiser)
        if task.masks:
            hold(task.model, steps, task.masks)
        return _Run(task, steps, State(generator, task.domain), balance, [])

    def epoch(self, number: int) -> Epoch:
        """One pass over the training inputs, and the accuracies after it."""
        task, recipe, start = self.task, self.task.recipe, time.process_time()
        rate = learning_rate(recipe, number)
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        task.model.train()
        batches = _batches(len(task.train), recipe.batch, self.state_of.generator)
        total = torch.zeros(())
        right = torch.zeros(())
        for k, chosen in enumerate(batches):
            self.state_of.share = ramp(recipe.schedule.ramp, number + k / len(batches))
            loss, hits = self.step(task.train.x[chosen], task.train.y[chosen])
            total += loss * len(chosen)
            right += hits
            if not math.isfinite(loss):
                raise TrainingError(self._diverged(f"a loss of {loss} in epoch {number + 1}, step {k + 1}"))
        if self.balance is not None:
            self.balance.renew(number)
        estimate_statistics(task.model, task.train.x)
        found = accuracies(
            task.model, task.validation.x, task.validation.y, task.epsilon, task.domain, recipe.evaluation.steps
        )
        count = sum(len(chosen) for chosen in batches)
        return Epoch(
            number + 1,
            task.method.epsilon * self.state_of.share,
            rate,
            float(total) / count,
            float(right) / count,
            found.clean,
            found.attacked,
            found.certified,
            time.process_time() - start,
        )

    def step(self, x: Tensor, y: Tensor) -> tuple[float, Tensor]:
        """One step down the gradient of a batch; the mean loss, and how many inputs were robustly right."""
        sizes = torch.full((len(y),), self.task.method.epsilon * self.state_of.share)
        if self.balance is not None:
            sizes = sizes * self.balance.sizes(y)
        net = read(self.task.model, x)
        lost = self.task.method.loss(net, x, y, sizes.reshape(-1, *(1 for _ in x.shape[1:])), self.state_of)
        if self.balance is None:
            mean = lost.losses.mean()
        else:
            mean = (self.balance.of(y) * lost.losses).mean()
            self.balance.see(y, lost.outputs)
        loss = mean + lost.penalty
        part = self.task.recipe.optimiser
        if part.l1:
            loss = loss + part.l1 * sum(w.abs().sum() for w in self.task.model.parameters() if w.ndim > 1)
        self.optimiser.zero_grad()
        torch.autograd.backward(loss)
        if part.clip is not None:
            torch.nn.utils.clip_grad_norm_(self.task.model.parameters(), part.clip)
        self.optimiser.step()
        return float(loss.detach()), (lost.outputs.detach().argmax(1) == y).sum()

    def judge(self, row: Epoch, file: Path | None) -> None:
        """Stops a run whose network guesses again, and remembers the weights of the best epoch at full ε."""
        common = float(torch.bincount(self.task.validation.y).max()) / len(self.task.validation)
        best = max((one.clean for one in self.history), default=0.0)
        fallen = [one.clean < CHANCE * common for one in self.history[-2:]]
        if best > LEARNT * common and len(fallen) == 2 and all(fallen):
            raise TrainingError(
                self._diverged(
                    f"a held-out accuracy of {100 * row.clean:.1f} % in epoch {row.epoch}, no better than guessing, "
                    f"after {100 * best:.1f} %"
                )
            )
        value = getattr(row, self.task.method.judged)
        value = row.clean if value is None else value
        # Of equal epochs the later one: few held-out inputs tie early, long before training is done.
        if self.state_of.share >= 1 and value + 1e-3 * row.clean >= self.score:
            self.score = value + 1e-3 * row.clean
            self.best = {key: one.detach().clone() for key, one in self.task.model.state_dict().items()}

    def _diverged(self, what: str) -> str:
        done = len(self.history)
        kept = f"the checkpoint of epoch {done} is kept" if done else "there is no checkpoint yet"
        return f"training diverged: {what}; {kept}; lower the learning rate or ε, or make the ramp longer"

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        numpy_state: Any = np.random.get_state()  # noqa: NPY002 (that of others' code)
        return {
            "recipe": self.task.recipe.model_dump_json(exclude={"output"}),
            "data": self.task.fingerprint,
            "model": self.task.model.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "generator": self.state_of.generator.get_state(),
            "torch": torch.get_rng_state(),
            "numpy": [str(numpy_state[0]), torch.from_numpy(numpy_state[1].astype(np.int64)), *numpy_state[2:]],
            "python": repr(random.getstate()),
            "history": [asdict(row) for row in self.history],
            "share": self.state_of.share,
            "best": self.best,
            "score": self.score,
            "balance": None if self.balance is None else self.balance.state(),
        }

    def restore(self, state: dict[str, Any], file: Path) -> None:
        """Goes on where a checkpoint was written; one of another recipe or other data is refused."""
        if state["recipe"] != self.task.recipe.model_dump_json(exclude={"output"}):
            raise InputError(f"{file}: expected a checkpoint of this recipe, got one of another; use another output")
        if state["data"] != self.task.fingerprint:
            raise InputError(f"{file}: expected a checkpoint of the same training data, got one of other data")
        self.task.model.load_state_dict(state["model"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.state_of.generator.set_state(state["generator"])
        torch.set_rng_state(state["torch"])
        kind, keys, *rest = state["numpy"]
        np.random.set_state((kind, keys.numpy().astype(np.uint32), *rest))  # noqa: NPY002
        random.setstate(ast.literal_eval(state["python"]))
        self.history = [Epoch(**row) for row in state["history"]]
        self.state_of.share = state["share"]
        self.best, self.score = state["best"], state["score"]
        if self.balance is not None:
            self.balance.restore(state["balance"])


def optimiser(model: torch.nn.Module, part: OptimiserPart) -> torch.optim.Optimizer:
    """The optimiser of a recipe."""
    if part.name == "adam":
        return torch.optim.Adam(model.parameters(), part.learning_rate, weight_decay=part.weight_decay)
    return torch.optim.SGD(
        model.parameters(), part.learning_rate, momentum=part.momentum, weight_decay=part.weight_decay
    )


def hold(model: torch.nn.Module, steps: torch.optim.Optimizer, masks: Mapping[str, Tensor]) -> None:
    """Sets pruned weights to 0, now and after every step."""
    weights = dict(model.named_parameters())

    def zero(*_: Any) -> None:
        with torch.no_grad():
            for name, mask in masks.items():
                weights[name].mul_(mask)

    zero()
    steps.register_step_post_hook(zero)


def learning_rate(recipe: Recipe, epoch: int) -> float:
    """The learning rate of an epoch, counted from 0."""
    part, rate = recipe.schedule, recipe.optimiser.learning_rate
    if part.cosine:
        return rate * (1 + math.cos(math.pi * epoch / recipe.epochs)) / 2
    falls = epoch // part.every if part.every is not None else sum(epoch >= at for at in part.at)
    return float(rate * part.factor**falls)


def ramp(ends: tuple[float, float], epoch: float) -> float:
    """ε as a share of its full size: 0 before the ramp, 1 after it, a straight line between."""
    first, last = ends
    if epoch >= last:
        return 1.0
    return max(0.0, (epoch - first) / (last - first))


def _batches(count: int, size: int, generator: torch.Generator) -> list[Tensor]:
    """All positions in a random order, in batches; a last batch of one is left out: batch norm cannot have it."""
    order = torch.randperm(count, generator=generator)
    return [chosen for chosen in torch.split(order, size) if len(chosen) > 1]


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """So many torch threads for a while: sums in another order would be other sums."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
