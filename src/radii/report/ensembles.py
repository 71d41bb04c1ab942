"""Figures of ensembles: the value against ε with its band, the mix as bars, and the attacks with whom each fools."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np

from radii.report.pictures import picture
from radii.report.style import GREY, PALETTE, blank, legend, plain, tidy
from radii.report.tables import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from radii.ensembles.attack import Attack
    from radii.ensembles.game import Game

ROWS = 8  # sizes in the table of a whole curve
BARS = 12  # sizes at which the mix is shown
SHOWN = 6  # inputs of an attack that are shown


@dataclass(frozen=True, eq=False)
class GameSection:
    """What a report says of one ensemble: tables, and figures with their captions."""

    name: str
    tables: tuple[Table, ...]
    figures: tuple[tuple[str, Figure], ...] = field(repr=False, default=())
    trouble: str = ""  # why there is nothing to show

    @property
    def pngs(self) -> list[tuple[str, bytes]]:
        """The figures as PNG files with their captions."""
        found = []
        for caption, figure in self.figures:
            file = BytesIO()
            figure.savefig(file, format="png", dpi=130)
            found.append((caption, file.getvalue()))
        return found

    @property
    def images(self) -> list[tuple[str, str]]:
        """The same as texts that a page can hold."""
        return [(caption, base64.b64encode(data).decode()) for caption, data in self.pngs]


def section(name: str, game: Game, epsilons: Sequence[float] = (), alphas: Sequence[float] = ()) -> GameSection:
    """The section of a game; without sizes of interest some are taken over the whole curve."""
    top = max(epsilons) if epsilons and game.limit is None else last_size(game)
    sizes = list(epsilons) or [top * (k + 1) / ROWS for k in range(ROWS)]
    shown = _worth_showing(game, sizes)
    caption = f"{name}: value against ε, and the mix that the defender should use"
    figures = [(caption, game_figure(game, top or 1.0))]
    drawn = attack_figure(game, game.attack(shown))
    if drawn is not None:
        figures.append((f"{name}: the best attack known at ε = {shown:.4g}, one row per deterministic attack", drawn))
    tables = [_values(name, game, sizes), _attacks(name, game, shown)]
    return GameSection(name, (*tables, *([_levels(name, game, alphas)] if alphas else [])), tuple(figures))


def _worth_showing(game: Game, sizes: Sequence[float]) -> float:
    """The size at which the attack is shown: of those that mix most attacks, the one with the most even value."""
    return max(sizes, key=lambda size: (len(game.attack(size).probabilities), -abs(game.value(size)[0] - 0.5)))


def _values(name: str, game: Game, sizes: Sequence[float]) -> Table:
    headers = (
        "ε",
        "value at least",
        "at most",
        "attacks",
        "best single",
        "uniform",
        *(f"mix: {n}" for n in game.names),
    )
    rows = []
    for size in sizes:
        mix, (low, high) = game.mix(size), game.value(size)
        count = len(game.attack(size).probabilities)
        single = f"{mix.single:.4g} ({game.names[mix.best]})"
        rows.append((f"{size:.4g}", low, high, count, single, mix.uniform, *(f"{w:.3g}" for w in mix.weights)))
    note = (
        f"{len(game.members)} members, {len(game.instances)} inputs, {game.norm.name}, {game.searches} radii in "
        f"{game.cpu_seconds:.0f} CPU seconds. The value is what the best randomised attack gets from the best "
        "member: at least by replayed inputs, at most by proofs. Best single and uniform are what is proven without "
        "the mix."
    )
    return Table(f"Ensemble {name}: value", headers, tuple(rows), note)


def _attacks(name: str, game: Game, size: float) -> Table:
    attack = game.attack(size)
    rows = []
    for place, (chance, fooled) in enumerate(zip(attack.probabilities.tolist(), attack.fooled)):
        rows.append((str(place + 1), chance, *(f"{int(n)} of {len(fooled)}" for n in fooled.sum(axis=0))))
    rows.append(("expected loss", "", *(f"{loss:.4g}" for loss in attack.losses)))
    headers = ("attack", "probability", *(f"fools {n}" for n in game.names))
    return Table(f"Ensemble {name}: the best attack known at ε = {size:.4g}", headers, tuple(rows))


def _levels(name: str, game: Game, alphas: Sequence[float]) -> Table:
    rows = []
    for level in alphas:
        proven, broken = game.radius(level)
        rows.append((f"{level:g}", f"{proven:.6g}", "not found" if broken is None else f"{broken:.6g}"))
    return Table(f"Ensemble {name}: radius at α", ("α", "robust up to", "an attack gets α from"), tuple(rows))


def game_figure(game: Game, top: float | None = None) -> Figure:
    """The value for every ε with its band, beside the best single member and uniform choice; below, the mix over ε."""
    figure = blank(7.2, 6.0)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    high = last_size(game) if top is None else top
    value_curve(game, high, above)
    mix_bars(game, high, below)
    above.set_xlabel("")
    return figure


def last_size(game: Game) -> float:
    """Up to which ε a game is shown: its limit, or a little more than the last size at which its value may change."""
    return game.limit if game.limit is not None else 1.05 * game.steps[-1] or 1.0


def value_curve(game: Game, top: float, axes: Axes) -> Axes:
    """The value against ε: what an attack gets, what the mix is proven to allow, and what other choices allow."""
    pieces = game.curve(top)
    ends = np.array([pieces[0][0], *(end for _, end, _, _ in pieces)])
    low, high = (np.array([piece[k] for piece in pieces]) for k in (2, 3))
    axes.stairs(high, ends, baseline=low, fill=True, color=PALETTE[0], alpha=0.25, label="value: between")
    axes.stairs(low, ends, baseline=None, color=PALETTE[0], label="an attack gets")
    axes.stairs(high, ends, baseline=None, color=PALETTE[0], linestyle="--", label="the mix allows")
    steps = np.array([*(step for step in game.steps if step < top), top])
    mixes = [game.mix(float(size)) for size in 0.5 * (steps[1:] + steps[:-1])]
    single, uniform = [one.single for one in mixes], [one.uniform for one in mixes]
    axes.stairs(single, steps, baseline=None, color=PALETTE[1], linestyle="-.", label="best member alone")
    axes.stairs(uniform, steps, baseline=None, color=GREY, linestyle=":", label="uniform choice")
    axes.set_ylim(-0.02, 1.02)
    axes.set_xlim(0.0, top)
    legend(axes, loc="upper left")
    return tidy(axes, f"ε ({game.norm.name})", "expected loss")


def mix_bars(game: Game, top: float, axes: Axes) -> Axes:
    """The defender's mix at some sizes, as stacked bars."""
    width = top / BARS
    sizes = [width * (k + 0.5) for k in range(BARS)]
    weights = np.array([game.mix(size).weights for size in sizes]).T
    base = np.zeros(len(sizes))
    for place, (name, row) in enumerate(zip(game.names, weights)):
        colour, hatch = PALETTE[place % len(PALETTE)], ("", "//", "..")[place // len(PALETTE) % 3]
        axes.bar(sizes, row, 0.86 * width, base, color=colour, hatch=hatch, label=plain(name), edgecolor="white")
        base += row
    lines = -(-len(game.names) // 3)
    axes.set_ylim(0.0, 1.05 + 0.17 * lines)  # names stand above the bars
    axes.set_yticks(np.linspace(0.0, 1.0, 6))
    legend(axes, loc="upper left", ncols=3)
    return tidy(axes, f"ε ({game.norm.name})", "the mix: probability", grid=None)


def attack_figure(game: Game, attack: Attack) -> Figure | None:
    """The inputs of an attack as pictures, one row per deterministic attack, and whom each fools.

    The inputs where the attacks differ most are shown first. None where inputs are no pictures.
    """
    points = attack.points
    if picture(points[0, 0]) is None:
        return None
    spread = attack.fooled.astype(float).std(axis=0).sum(axis=1) + 1e-3 * attack.fooled.any(axis=(0, 2))
    chosen = np.argsort(-spread, kind="stable")[:SHOWN]
    figure = blank(1.6 * len(chosen) + 0.6, 2.1 * len(points) + 0.2)
    grid = figure.subplots(len(points), len(chosen), squeeze=False)
    names = np.array(game.names)
    for row, chance, moved, fooled in zip(grid, attack.probabilities, points, attack.fooled):
        row[0].set_ylabel(f"probability {chance:.3g}", fontsize=8)
        for axes, place in zip(row, chosen):
            axes.imshow(picture(moved[place]), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
            axes.set_xticks([])
            axes.set_yticks([])
            instance, who = game.instances[place], names[fooled[place]]
            told = "all" if len(who) == len(names) else "nobody" if not len(who) else "\n".join(who[:4])
            more = f"\nand {len(who) - 4} more" if 4 < len(who) < len(names) else ""
            axes.set_title(plain(f"input {instance.index}, is {instance.label}\nfools {told}{more}"), fontsize=6)
    return figure
