"""RadiusSearch: narrowing one instance's radius with trees, from the attack's upper end down and from proven goals up.

The first goal is `upper` − tolerance, tried briefly. If its tree does not close, goals that the root bounds prove are
found by bisection, and from there a ladder goes up: what trees cost grows about exponentially with the goal, so the
next goal is the one whose predicted cost fits the budget that is left. At any moment [lower, upper] is valid.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from torch import Tensor

from radii.bounds.float32 import float32_error
from radii.bounds.intermediate import Root, bound_root
from radii.bounds.region import Region
from radii.bounds.rounding import UP, proving
from radii.engine.bottleneck import Bottleneck, forbidden
from radii.engine.budget import Meter
from radii.engine.condensed import condense, objectives, truncated
from radii.engine.frontier import FIRST, Frontier
from radii.engine.hidden_layers import mixed_share, settle_signs
from radii.engine.ladder import Ladder
from radii.engine.nodes import Problem
from radii.engine.output_rows import OutputRows
from radii.engine.search_tree import SearchTree
from radii.engine.smaller_ball import bound_again
from radii.engine.tree import Tree
from radii.evidence.record import Recorder
from radii.problem import Reason

FIRST_SHARE = 0.06  # of the budget, for the final goal before the ladder
ROOT_SHARE = 0.1  # for the bisection by root bounds
ROOT_NODES = 40  # a tree that needs more is not proven at its root
CAPS = (50.0, 1.25, 160.0)  # nodes a hidden sign may cost: at first, more for every proven goal, at most
PASSES = 3  # over deep networks, to decide one goal or where there is a bottleneck
TIMES = 3.0  # more in every further pass
FITS, WORTHWHILE = 0.8, 1.4  # or as many as fit into this part of the time left, if they are so many times more
LEAST = 160  # times that, nodes of a layer of a deep network at least: a layer with few signs deserves them
TRIED, NARROW = 20, 200  # times that, nodes of the tree of the margins after a pass, or of what a bottleneck leaves
DEEP = 3  # layers with undecided neurons: with more, a first goal that looks hopeless is not settled
MIXED = 0.4  # of the hidden neurons: with more that really take both signs, settling them buys nothing
PLAIN_SHALLOW, PLAIN_DEEP = 600, 64  # nodes of a plain tree before hidden signs are settled
EARLY = 100  # nodes of a tree of the margins each time a layer is settled
GRACE = 0.01  # of the budget, for that tree when time is up
VAIN = 0.05  # of the budget, for bottlenecks from which nothing comes
ROOTS = 4  # bisections by root bounds, whatever they cost
REBUILD = 0.97  # a goal that shrank to this part of the tree's ball wants a new tree
HELD, MOST_HELD = 2**26, 2**31  # bytes of open nodes: so many are always kept, and so many at most
OPEN_ROOM = 2  # open nodes may take twice the memory that a batch may
LARGE = 4000  # undecided neurons beyond which a tree costs more than it can prove


@dataclass(eq=False)
class RadiusSearch:
    """The search for one instance's radius; `attack` turns points into a lower upper end, None when it finds none."""

    margins: OutputRows
    region: Callable[[float], Region]  # the ball of a radius, of one image
    tolerance: float
    meter: Meter
    attack: Callable[[Tensor], float | None]
    deployed: bool = False  # whether margins must survive the rounding of a float32 forward pass
    upper: float | None = None
    limit: float | None = None
    lower: float = 0.0
    proven: bool = False  # whether `lower` was proven at all
    stopped: Reason | None = None
    roots: dict[float, Root] = field(default_factory=dict)  # the best bounds known, by radius
    cap: float = CAPS[0]  # nodes a hidden sign may cost
    least: float = FIRST  # the same in the first pass over a deep network, after what proven goals took
    reached: float = 0.0  # the same in the last pass that was begun
    leap: float | None = None  # the same in the only pass, where the frontier tells it
    settled: tuple[int, int] = 0, 0  # how many layers the last pass settled, and of how many
    necked: bool = False  # whether a bottleneck was met: the frontier says nothing of such networks
    vain: float = 0.0  # share of the budget that went into bottlenecks from which nothing came
    recorder: Recorder | None = None  # hears of the trees, for evidence

    def goal(self) -> float:
        """The largest radius worth proving."""
        ends = [e for e in (self.limit, self._below_upper()) if e is not None]
        return min(ends)

    def _below_upper(self) -> float | None:
        return None if self.upper is None else max(self.upper - 0.999 * self.tolerance, 0.5 * self.upper)

    @property
    def finished(self) -> bool:
        """Whether nothing is left to prove."""
        return self.proven and self.lower >= self.goal()

    def run(self) -> None:
        """Narrows the radius until it is closed or the budget is used up."""
        with proving():
            if not self._unlimited and not self._try(self.goal(), FIRST_SHARE):
                self._find_root()
                self._climb()
            while not self.finished and self.stopped is None:
                self._try(self.goal(), None)

    @property
    def _unlimited(self) -> bool:
        return self.meter.budget.seconds is None and self.meter.budget.nodes is None

    def _find_root(self) -> None:
        """The largest goal, roughly, that needs hardly more than root bounds."""
        failed, until, tries = self.goal(), self.meter.share + ROOT_SHARE, 0
        while self.stopped is None and failed - self.lower > 0.04 * failed:
            if tries >= ROOTS and self.meter.share >= until:
                return
            middle, tries = 0.5 * (self.lower + failed), tries + 1
            if not self._try(middle, ROOT_SHARE, ROOT_NODES):
                failed = middle
            failed = min(failed, self.goal())

    def _climb(self) -> None:
        """Goals of growing cost, each predicted from the ones before."""
        ladder, frontier = Ladder.above(self.lower), Frontier()
        while not self.finished and self.stopped is None:
            before, self.reached, self.settled = self.meter.share, 0.0, (0, 0)
            goal, share = ladder.next_goal(self.lower, self.goal(), 1.0 - before)
            leap = None if self.necked else frontier.leap(self.lower, self.goal(), 1.0 - before)
            self.leap = None if leap is None else leap[1]
            if leap is not None:
                goal, share = leap[0], 1.0 - before
            proven, cost = self._try(goal, share), self.meter.share - before
            ladder.tell(goal, proven, cost, share)
            if self.settled[0] and not self.necked:
                frontier.tell(goal, proven, self.reached, cost, self.settled, self.lower)
            elif leap is not None and not proven:
                frontier = Frontier()  # no pass came of it: asked again it would say the same
            if proven:
                self.least = max(self.least, self.reached)
                self.cap = min(self.cap * CAPS[1], CAPS[2])

    def decide(self, goal: float) -> None:
        """Proves or refutes one goal."""
        with proving():
            self._try(goal, None)

    def _try(self, goal: float, share: float | None, nodes: int | None = None) -> bool:
        """Whether a goal was proven within a share of the budget (all of it when None) and so many nodes."""
        if self.meter.over is not None:
            self.stopped = self.meter.over
            return False
        until = None if share is None else self.meter.share + share
        while not self._attempt(goal, until, nodes):
            self.stopped = self.stopped or self.meter.over
            # A nearer witness was met: bounds on the smaller ball are much tighter, so start again there.
            if self.stopped is not None or not self.goal() < REBUILD * goal:
                return False
            goal = self.goal()
        return True

    def _attempt(self, goal: float, until: float | None, nodes: int | None) -> bool:
        """Whether a goal is proven by a plain tree or, if that does not close soon, after the signs are settled."""
        root = self.roots[goal] = self._root(goal)
        if root.undecided > LARGE or self.meter.over:
            return self._prove_whole(root, goal)
        root = self.roots[goal] = replace(root, condensed=condense(root))
        tree = self._tree(root, goal)
        plain = PLAIN_DEEP if len(tree.problem.net.blocks) > 2 else PLAIN_SHALLOW
        if nodes is not None and nodes <= plain:
            return self._work(tree, until, nodes)
        if self._work(tree, until, plain):
            return True
        if self._leave(goal, until):
            return False
        deep = len(tree.problem.net.blocks) > DEEP
        if deep and until is not None and not self.proven and tree.lower == 0.0:
            return False  # bounds of such a ball say nothing at all, and settling many layers is dear
        if len(tree.problem.net.blocks) <= 2 or mixed_share(tree.problem.net) <= MIXED:
            return self._settle(root, goal, until, nodes)
        if deep and until is None:
            # Slopes of their own for the bounds of every hidden neuron: too dear for one goal of many.
            for tighter, _, _ in settle_signs(
                root, partial(self._count, until=None), 0, recorder=self.recorder, room=self.meter.room
            ):
                self.roots[goal] = tighter
            tree = self._tree(self.roots[goal], goal)
        return self._work(tree, until, nodes)

    def _settle(self, root: Root, goal: float, until: float | None, nodes: int | None) -> bool:
        """Whether a goal is proven by trees of the margins once the signs of hidden layers are settled."""
        deep = sum(bool(lines.unstable.any()) for lines in root.lines.values()) > DEEP
        cap = (self.leap or self.least) if deep else self.cap
        for number in range(PASSES if deep else 1):
            last, before = not deep or number == PASSES - 1, self.meter.share
            self.reached = cap if deep else 0.0
            proven = self._pass(root, goal, until, int(cap), nodes if last else int(TRIED * cap))
            if proven is not None:
                return proven
            if until is not None and deep and not self.necked:
                return False  # more nodes go to the goal that the frontier of so many is at
            more = TIMES if until is None else self._affordable(self.meter.share - before, until)
            if more < WORTHWHILE:
                return False
            root, cap = self.roots[goal], cap * more
        return False

    def _affordable(self, cost: float, until: float) -> float:
        """How many times the nodes of a pass that cost so much the next one may have, to be done in time."""
        return TIMES if cost <= 0 else min(TIMES, FITS * (until - self.meter.share) / cost)

    def _pass(self, root: Root, goal: float, until: float | None, cap: int, nodes: int | None) -> bool | None:
        """Whether a goal is proven while all layers are settled once; None when it takes another pass with more nodes.

        A hidden sign may cost `cap` nodes, the tree of the margins `nodes` when all layers are settled.
        """
        layers, number = sum(bool(lines.unstable.any()) for lines in root.lines.values()), 0
        deep = layers > DEEP
        first, asked = deep and cap == FIRST, False
        for settled, relu, helps in settle_signs(
            root, partial(self._count, until=until), cap, LEAST if deep else 0, self.recorder, self.meter.room
        ):
            root, number = settled, number + 1
            self.roots[goal] = root
            late = None if until is None else max(until, self.meter.share + GRACE)
            narrow = None if asked else self._narrow(root, relu, goal)
            if deep:
                self.settled = number, layers - 1
            if narrow is not None:
                asked = self.necked = True
                if self._work(narrow, late, NARROW * cap, whole=False):
                    return True
                if self._leave(goal, until):
                    return False
                if first:
                    return None
            # Often the margins close before the last layers are settled; none closed yet means it is too early.
            tree = self._tree(root, goal)
            if len(tree.open or ()) < len(self.margins.rows) and self._work(tree, late, EARLY):
                return True
            if self._leave(goal, until):
                return False
            if not helps and not first:
                if until is not None:
                    return False  # a smaller goal is a better use of what is left
                break
        if self._work(self._tree(root, goal), until, nodes):
            return True
        return False if self._leave(goal, until) else None

    def _leave(self, goal: float, until: float | None) -> bool:
        """Whether to leave a goal: no time for it, or a witness nearer than it."""
        return self.stopped is not None or self.goal() < REBUILD * goal or not self._within(until)

    def _prove_whole(self, root: Root, goal: float) -> bool:
        """Whether a goal is proven by linear bounds of the whole network, without a tree."""
        self.stopped = self.meter.over
        if self.stopped is not None:
            return False
        undecided, shift = self._undecided(root)
        self.meter.nodes += len(self.margins.rows)
        if len(undecided):
            a, c = root.best_margins(self.margins.rows[None, undecided])
            if not bool((root.region.lowest(a, c - shift[undecided]) > 0).all()):
                return False
        self.lower, self.proven = max(self.lower, goal), True
        return True

    def _count(self, visited: int, until: float | None) -> bool:
        """Adds to the meter; whether there is time left."""
        self.meter.nodes += visited
        return self._within(until)

    def _within(self, until: float | None) -> bool:
        return self.meter.over is None and (until is None or self.meter.share < until)

    def _root(self, goal: float) -> Root:
        """The root of a goal, from the smallest larger ball, which knows what was proven on larger ones."""
        self.roots = {size: root for size, root in self.roots.items() if size >= self.lower}
        larger = [size for size in self.roots if size >= goal]
        base = self.roots[min(larger)] if larger else None
        if base is not None and base.condensed is not None:
            return bound_again(base, self.region(goal))
        known = None if base is None else {k: (v.low, v.high) for k, v in base.lines.items()}
        return bound_root(self.margins.graph, self.region(goal), known, go_on=lambda: not self.meter.over)

    def _undecided(self, root: Root) -> tuple[Tensor, Tensor]:
        """The margins that the root's lines leave open, and what every margin has to exceed."""
        margins, shift = self.margins, self.margins.shift
        if self.deployed:
            shift = shift + (margins.rows.abs() @ float32_error(root)[0]) * UP
        linear = root.margins(margins.rows[None])
        return (~(root.region.lowest(linear.a, linear.shifted() - shift)[0] > 0)).nonzero()[:, 0], shift

    def _tree(self, root: Root, goal: float) -> Tree:
        """The tree of a goal, its roots bounded."""
        undecided, shift = self._undecided(root)
        net = condense(root)
        rows = objectives(root, net, self.margins.rows[undecided], shift[undecided])
        log = None if self.recorder is None else self.recorder.margins(net, undecided)
        self.meter.nodes += len(self.margins.rows)
        return Tree.started(Problem.of(net, rows), goal, self.meter.room, log)

    def _narrow(self, root: Root, settled: int, goal: float) -> Tree | None:
        """The tree of what a bottleneck's few values must not be, if there is one; no evidence is kept of that.

        Layers after the ReLU that was settled last are not asked: settling them may leave fewer values.
        """
        neck = None if self.recorder is not None else Bottleneck.of(root)
        if neck is None or neck.relu > settled:
            return None
        undecided, shift = self._undecided(root)
        if not len(undecided) or self.vain > VAIN:
            return None
        before = self.meter.share
        found = forbidden(root, neck, self.margins.rows[undecided], shift[undecided])
        if found is None:
            self.vain += self.meter.share - before
            return None
        net = condense(root)
        early = truncated(net, max((b for (_, b), (k, _) in zip(net.blocks, net.where) if k <= neck.relu), default=0))
        rows = root.region.center.new_zeros((len(found[0]), root.graph.nodes[neck.relu].size))
        rows[:, neck.live] = found[0]
        asked = objectives(root, net, rows, found[1], neck.relu)
        asked = replace(asked, m=asked.m[:, : early.size])
        self.meter.nodes += len(rows)
        return Tree.started(Problem.of(early, asked), goal, self.meter.room)

    def _work(self, tree: SearchTree[Any], until: float | None, nodes: int | None = None, whole: bool = True) -> bool:
        """Runs a tree until it is done or has used its share; learns from it what can be learnt.

        A tree that is not `whole` asks for more than the margins: it is left when nothing in it can be split.
        """
        size = tree.goal
        while True:
            self._learn(tree)
            if tree.done:
                return True
            self.stopped = self.meter.over
            if self.stopped is not None:
                return False
            if (until is not None and self.meter.share >= until) or (nodes is not None and tree.visited > nodes):
                return False
            if tree.goal < REBUILD * size:
                return False
            held = len(tree.open or ()) * tree.node_bytes
            if held > HELD and held > min(MOST_HELD, OPEN_ROOM * self.meter.room):
                self.stopped = Reason.MEMORY if until is None else None
                return False
            if not whole and tree.open is not None and not bool(tree.open.splittable.any()):
                return False
            before = tree.visited
            moved = tree.step()
            self.meter.nodes += tree.visited - before
            if not self._strike(tree) and not moved:
                self.stopped = Reason.INCOMPLETE
                return False

    def _strike(self, tree: SearchTree[Any]) -> bool:
        """Tries the tree's latest minimisers as witnesses; whether that lowered the upper end."""
        if tree.minimisers is None or not len(tree.minimisers):
            return False
        found = self.attack(tree.minimisers + self.region(tree.goal).center)
        tree.minimisers = None
        if found is None or (self.upper is not None and found >= self.upper):
            return False
        self.upper = found
        tree.relax_goal(self.goal())
        return True

    def _learn(self, tree: SearchTree[Any]) -> None:
        if tree.lower > self.lower or tree.done:
            self.lower = max(self.lower, tree.lower)
            self.proven = self.proven or tree.lower > 0
            if self.recorder is not None and isinstance(tree, Tree) and tree.log is not None:
                self.recorder.proved(tree.log, tree.lower)
