"""SignProver: one goal on a ReLU network, by trees over the signs of neurons.

A plain tree of the margins comes first. If it does not close soon, hidden layers are settled one after another, and the
margins are asked again in between. How many layers have undecided neurons decides what is worth while: up to
`settling.shallow` of them settling never hurts; beyond `settling.deep` bounds are loose and every pass is dear.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

from radii._torch import Tensor, torch
from radii.bounds.intermediate import Root, bound_root
from radii.engine.bottleneck import Bottleneck, forbidden
from radii.engine.condensed import CondensedRoot, condense, objectives, truncated
from radii.engine.goals import Goal, Outcome
from radii.engine.hidden_layers import mixed_share, settle_signs
from radii.engine.prover import End, Limits, Prover
from radii.engine.smaller_ball import bound_again
from radii.engine.state import RadiusState
from radii.engine.subproblem import Problem, worth_hulls
from radii.engine.tree import Tree


class SignProver(Prover):
    """Goals of one search by trees over signs; keeps the bounds of all balls, from which smaller ones are bounded."""

    def __init__(self, state: RadiusState) -> None:
        super().__init__(state)
        self.settling = state.tuning.settling
        self.balls: dict[float, Root | CondensedRoot] = {}  # the best bounds known, by radius
        self.outcome = Outcome(False)  # of the goal under way
        self.pass_share = 0.0  # of the budget, what the last pass over the whole network took
        self.vain = 0.0  # share of the budget that went into bottlenecks from which nothing came

    def attempt(self, goal: Goal) -> Outcome:
        """What comes of one goal of many; the outcome tells of its last pass, too."""
        self.outcome = Outcome(False, bottleneck=self.outcome.bottleneck, plain=self.outcome.plain)
        proven = super().attempt(goal).proven  # which tells `self.outcome` of every pass
        return replace(self.outcome, proven=proven)

    def _attempt(self, radius: float, goal: Goal, limits: Limits) -> bool:
        """Whether a radius is proven by a plain tree or, if that does not close soon, after one pass."""
        if self._vague(self._bounds(radius)) or self.state.over():
            return False
        ball = self._ball(radius)
        if isinstance(ball, Root):
            return self._prove_whole(ball, radius)
        before, tree, plain = self.state.meter.share, self._tree(ball, radius), self._plain_nodes(ball)
        if goal.tree_nodes is not None and goal.tree_nodes <= plain:
            proven = self._work(tree, limits, goal.tree_nodes)
            if not proven:
                self._settles(ball)  # so that the ladder knows
            return proven
        if self._work(tree, limits, plain):
            return True
        if self._leave(radius, limits):
            return False
        if self._deep(ball) and not self.state.proven and tree.lower == 0.0:
            return False  # bounds of such a ball say nothing at all, and settling many layers is dear
        if self._settles(ball):
            return self._settle(ball, radius, goal, limits)
        if self._worth_slopes(ball, (self.state.meter.share - before) / max(1, tree.visited), goal):
            tree = self._tree(self._own_slopes(ball, radius, limits), radius)
        return self._work(tree, limits, goal.tree_nodes)

    def _decide(self, radius: float) -> bool:
        """Whether a radius is proven by a plain tree, by several passes, or by a tree without limits."""
        limits, ball = Limits(), self._ball(radius)
        if self.state.over():
            return False
        if isinstance(ball, Root):
            return self._prove_whole(ball, radius)
        tree = self._tree(ball, radius)
        if self._work(tree, limits, self._plain_nodes(ball)):
            return True
        if self._leave(radius, limits):
            return False
        if self._settles(ball):
            return self._settle_fully(ball, radius, limits)
        if self._deep(ball):
            tree = self._tree(self._own_slopes(ball, radius, limits), radius)
        return self._work(tree, limits)

    def _worth_slopes(self, ball: CondensedRoot, node: float, goal: Goal) -> bool:
        """Whether slopes of their own for hidden bounds cost little beside a goal, told by the price of one node."""
        price = 2 * (ball.net.size - ball.net.blocks[0][1]) * node
        return self.state.recorder is None and price < self.settling.slopes * goal.share

    def _own_slopes(self, ball: CondensedRoot, radius: float, limits: Limits) -> CondensedRoot:
        """The ball with slopes of their own for the bounds of every hidden neuron."""
        for settled, _, _ in self._signs(ball, limits, 0):
            ball = self.balls[radius] = settled
        return ball

    def bounded(self, radius: float) -> Root:
        ball = self._bounds(radius)
        return self._measured(ball if isinstance(ball, Root) else ball.root)

    def in_one_pass(self, radius: float, go_on: Callable[[], bool]) -> Root:
        size, base = self._larger(radius)
        root = base.root if isinstance(base, CondensedRoot) else base
        if root is not None and size == radius:
            return self._measured(root)
        return self._through_graph(root, radius, go_on)

    def _larger(self, radius: float) -> tuple[float, Root | CondensedRoot | None]:
        """The smallest ball that holds this one and was bounded, with its size."""
        size = min((size for size in self.balls if size >= radius), default=math.inf)
        return size, self.balls.get(size)

    def _through_graph(self, base: Root | None, radius: float, go_on: Callable[[], bool]) -> Root:
        """Bounds of a ball by a pass over the whole network, from those of a larger one."""
        state, known = self.state, None if base is None else {k: (v.low, v.high) for k, v in base.lines.items()}
        return bound_root(state.margins.graph, state.region(radius), known, go_on=go_on, tuning=state.tuning.bounds)

    def _measured(self, root: Root) -> Root:
        """The root with the magnitudes of its own ball, where they count: smaller balls keep those of larger ones."""
        if not self.state.deployed:
            return root
        known = {k: (v.low, v.high) for k, v in root.lines.items()}
        return bound_root(root.graph, root.region, known, frozen=list(known), tuning=root.tuning)

    def _ball(self, radius: float) -> Root | CondensedRoot:
        """The bounds of a ball, condensed unless the network is so large that trees cost more than they can prove.

        Or the budget so small that they cannot be begun; evidence is of trees.
        """
        ball, state = self._bounds(radius), self.state
        timely = self.settling.tree_price * self.pass_share <= 1.0 - state.meter.share or state.recorder is not None
        if isinstance(ball, Root) and ball.undecided <= self.settling.large and timely and not state.meter.over:
            ball = CondensedRoot(ball, condense(ball, state.tuning.trees))
            if worth_hulls(ball.net, state.tuning.trees):
                ball = bound_again(ball, ball.root.region, tuning=state.tuning, hulls=True)
            self.balls[radius] = ball
        return ball

    def _bounds(self, radius: float) -> Root | CondensedRoot:
        """The bounds of a ball, from the smallest larger one, which knows what was proven on larger ones."""
        state = self.state
        self.balls = {size: ball for size, ball in self.balls.items() if size >= state.lower}
        size, base = self._larger(radius)
        ball: Root | CondensedRoot
        if base is not None and size == radius:
            return base
        if isinstance(base, CondensedRoot):
            ball = bound_again(base, state.region(radius), tuning=state.tuning, hulls=True)
        else:
            before = state.meter.share
            ball = self._through_graph(base, radius, lambda: not state.meter.over)
            self.pass_share = state.meter.share - before
        self.balls[radius] = ball
        return ball

    def _vague(self, ball: Root | CondensedRoot) -> bool:
        """Whether lines say nothing of a ball, whose pass was dear, while nothing is proven: trees would not either."""
        root, margins = ball if isinstance(ball, Root) else ball.root, self.state.margins
        if self.state.proven or self.pass_share < self.settling.dear_pass:
            return False
        linear = root.margins(margins.rows[None])
        certified = root.region.root(linear.a, linear.shifted() - self.state.thresholds(self._measured(root)))
        return not bool((margins.greatest(certified) > 0).all())

    def _deep(self, ball: CondensedRoot) -> bool:
        return ball.depth > self.settling.deep

    def _plain_nodes(self, ball: CondensedRoot) -> int:
        """Nodes of a plain tree before hidden layers are settled."""
        rule, wide = self.settling, ball.net.size - (ball.net.blocks[0][1] if ball.depth else 0)
        return max(rule.plain_shallow, int(rule.plain_each * wide)) if ball.depth <= rule.shallow else rule.plain_deep

    def _settles(self, ball: CondensedRoot) -> bool:
        """Whether settling hidden layers is worth while: not where many neurons really take both signs."""
        settles = ball.depth <= self.settling.shallow
        settles = settles or mixed_share(ball.net, self.state.tuning.hidden) <= self.settling.mixed
        self.outcome = replace(self.outcome, plain=not settles)
        return settles

    def _settle(self, ball: CondensedRoot, radius: float, goal: Goal, limits: Limits) -> bool:
        """Whether one goal of many is proven by a pass; by several only where there is a bottleneck.

        Without one, more nodes are better spent on the goal that the frontier of so many nodes is at.
        """
        deep = self._deep(ball)
        cap, passes = (goal.deep_nodes, self.settling.passes) if deep else (goal.nodes, 1)
        for number in range(passes):
            before, last = self.state.meter.share, number == passes - 1
            self.outcome = replace(self.outcome, deep_nodes=cap if deep else 0.0)
            end, ball = self._pass(ball, radius, limits, cap)
            if end is End.HOPELESS:
                return False  # a smaller goal is a better use of what is left
            nodes = goal.tree_nodes if last else int(self.settling.tried_nodes * cap)
            proven = self._ask_again(end, ball, radius, limits, nodes)
            if proven is not None:
                return proven
            more = self._affordable(self.state.meter.share - before, limits.until)
            if not self.outcome.bottleneck or more < self.settling.worthwhile:
                return False
            cap *= more
        return False

    def _settle_fully(self, ball: CondensedRoot, radius: float, limits: Limits) -> bool:
        """Whether the only goal is proven by passes with more and more nodes per neuron."""
        tuning, settling = self.state.tuning, self.settling
        cap, passes = (tuning.frontier.first, settling.passes) if self._deep(ball) else (settling.first_nodes, 1)
        for number in range(passes):
            end, ball = self._pass(ball, radius, limits, cap)
            nodes = None if number == passes - 1 else int(settling.tried_nodes * cap)
            proven = self._ask_again(end, ball, radius, limits, nodes)
            if proven is not None:
                return proven
            cap *= settling.times
        return False

    def _affordable(self, cost: float, until: float) -> float:
        """How many times the nodes of a pass that cost so much the next one may have, to be done in time."""
        settling = self.settling
        if cost <= 0:
            return settling.times
        return min(settling.times, settling.fits * (until - self.state.meter.share) / cost)

    def _pass(self, ball: CondensedRoot, radius: float, limits: Limits, nodes: float) -> tuple[End, CondensedRoot]:
        """How settling all layers once ends, with so many nodes per neuron; and the bounds that it has proven."""
        state, settling, cap = self.state, self.settling, int(nodes)
        deep, layers, asked = self._deep(ball), ball.depth, False
        first = deep and cap == state.tuning.frontier.first
        for number, (settled, relu, helps) in enumerate(self._signs(ball, limits, cap, deep), start=1):
            ball = self.balls[radius] = settled
            late = replace(limits, until=max(limits.until, state.meter.share + settling.grace))
            narrow = None if asked else self._narrow(ball, relu, radius)
            if deep:
                self.outcome = replace(self.outcome, settled=(number, layers - 1))
            if narrow is not None:
                asked, self.outcome = True, replace(self.outcome, bottleneck=True)
                if self._work(narrow, late, settling.bottleneck_nodes * cap):
                    return End.PROVEN, ball
                if self._leave(radius, limits):
                    return End.LEFT, ball
                if first:
                    return End.AGAIN, ball
            # Often the margins close before the last layers are settled; none closed yet means it is too early.
            tree = self._tree(ball, radius)
            if len(tree.open) < state.margins.clauses and self._work(tree, late, settling.early_nodes):
                return End.PROVEN, ball
            if self._leave(radius, limits):
                return End.LEFT, ball
            if not helps and not first:
                return End.HOPELESS, ball
        return End.SETTLED, ball

    def _signs(
        self, ball: CondensedRoot, limits: Limits, cap: int, deep: bool = False
    ) -> Iterator[tuple[CondensedRoot, int, bool]]:
        """The ball after each layer that was settled, with so many nodes per neuron, within the limits."""
        state = self.state

        def go_on(visited: int) -> bool:
            state.meter.nodes += visited
            return state.within(limits.until)

        least = self.settling.layer_nodes if deep else 0
        return settle_signs(ball, go_on, cap, least, state.recorder, state.meter.room, state.tuning)

    def _ask_again(
        self, end: End, ball: CondensedRoot, radius: float, limits: Limits, nodes: int | None
    ) -> bool | None:
        """Whether a goal is proven after a pass, by a last tree of the margins; None when it takes another pass."""
        if end in (End.PROVEN, End.LEFT):
            return end is End.PROVEN
        if end is not End.AGAIN:
            if self._work(self._tree(ball, radius), limits, nodes):
                return True
            if self._leave(radius, limits):
                return False
        return None

    def _prove_whole(self, root: Root, radius: float) -> bool:
        """Whether a goal is proven by linear bounds of the whole network, without a tree."""
        state, margins = self.state, self.state.margins
        undecided, shift = self._undecided(root)
        state.meter.nodes += len(margins.rows)
        if len(undecided):
            needed, members = margins.only(undecided)
            a, c = root.best_margins(margins.rows[None, needed])
            proved = margins.over(root.region).lowest(a, c - shift[needed])[0] > 0
            if not bool((proved if members is None else proved[members].any(1)).all()):
                return False
        state.prove(radius)
        return True

    def _undecided(self, root: Root) -> tuple[Tensor, Tensor]:
        """The clauses of which the root's lines leave every row open, and what every row has to exceed."""
        margins = self.state.margins
        linear, shift = root.margins(margins.rows[None]), self.state.thresholds(self._measured(root))
        least = margins.over(root.region).lowest(linear.a, linear.shifted() - shift)[0]
        return (~(margins.greatest(least.nan_to_num(nan=-torch.inf)) > 0)).nonzero()[:, 0], shift

    def _tree(self, ball: CondensedRoot, radius: float) -> Tree:
        """The tree of the margins on a ball, its roots bounded."""
        state, margins = self.state, self.state.margins
        undecided, shift = self._undecided(ball.root)
        log = None if state.recorder is None else state.recorder.margins(ball.net, undecided)
        state.meter.nodes += len(margins.rows)
        if margins.members is not None and len(undecided) > len(margins.only(undecided)[0]):
            undecided = undecided[~self._refuted(ball, radius, undecided, shift)]
        needed, members = margins.only(undecided)
        rows = objectives(ball.root, ball.net, margins.rows[needed], shift[needed])
        problem = Problem.of(ball.net, rows, state.tuning, members).over(margins.over)
        return Tree(problem, radius, state.meter.room, log=log).started()

    def _refuted(self, ball: CondensedRoot, radius: float, clauses: Tensor, shift: Tensor) -> Tensor:
        """Which of many clauses have a row that is positive on the whole ball, each row bounded once by itself."""
        state = self.state
        needed, members = state.margins.only(clauses)
        assert members is not None
        rows = objectives(ball.root, ball.net, state.margins.rows[needed], shift[needed])
        tree = Tree(Problem.of(ball.net, rows, state.tuning), radius, state.meter.room).started()
        state.meter.nodes += tree.visited
        positive = torch.ones(len(needed), dtype=torch.bool)
        positive[tree.open.objective] = False
        return positive[members].any(1)

    def _narrow(self, ball: CondensedRoot, settled: int, radius: float) -> Tree | None:
        """The tree of what a bottleneck's few values must not be, if there is one; no evidence is kept of that.

        Layers after the ReLU that was settled last are not asked: settling them may leave fewer values. The tree asks
        for more than the margins, so that exact leaves of it say nothing.
        """
        state, root, net = self.state, ball.root, ball.net
        plain = state.recorder is None and state.margins.members is None
        neck = Bottleneck.of(root, state.tuning.bottlenecks.live) if plain else None
        if neck is None or neck.relu > settled:
            return None
        undecided, shift = self._undecided(root)
        if not len(undecided) or self.vain > self.settling.vain:
            return None
        before = state.meter.share
        found = forbidden(root, neck, state.margins.rows[undecided], shift[undecided], state.tuning)
        if found is None:
            self.vain += state.meter.share - before
            return None
        early = truncated(net, max((b for (_, b), (k, _) in zip(net.blocks, net.where) if k <= neck.relu), default=0))
        rows = root.region.center.new_zeros((len(found[0]), root.graph.nodes[neck.relu].size))
        rows[:, neck.live] = found[0]
        asked = objectives(root, net, rows, found[1], neck.relu)
        asked = replace(asked, m=asked.m[:, : early.size])
        state.meter.nodes += len(rows)
        return Tree(Problem.of(early, asked, state.tuning), radius, state.meter.room, settles=False).started()
