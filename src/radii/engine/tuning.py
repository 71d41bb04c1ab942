"""Tuning: every number that steers the engine, with its unit and the reason for it; none of them changes what is true.

`Native(tuning=replace(Tuning(), settling=replace(Settling(), plain_deep=1)))` runs the engine with others. Whatever
they are, radii stay valid: they decide how far the ends of a radius come together within a budget, not what is proven.
Numbers that proofs rest on (units of rounding) are not here but beside the derivations, in `bounds`.

A *share* is a part of the budget of one input, between 0 and 1. *Nodes per neuron* are the branch-and-bound nodes that
may go into proving the sign of one hidden neuron. A *goal* is a radius that a search tries to prove.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from radii.bounds.tuning import Bounding
from radii.engine.branching import Rule, largest_loss
from radii.engine.curve_tuning import CurvedTrees, IntervalTrees


@dataclass(frozen=True)
class Attacking:
    """The attack from inside the search, and what follows a radius."""

    share: float = 0.35  # of the budget that the attack before the search may be predicted to take
    unsure: float = 1.3  # times what its gradients alone are predicted to take: measured ratios are 0.8 to 1.5
    probed: int = 64  # gradients taken at once to tell their price: more of them are not cheaper each
    first_steps: int = 6  # of projected gradients that a ball gets before its nearest violation is looked for
    refined: int = 24  # points of a search from which gradient steps start, when they do
    evidence_seconds: float = 8.0  # CPU seconds that making evidence may take beyond the budget …
    evidence_share: float = 0.2  # … and this part of the budget on top
    replays: int = 4  # points of one round of a search that are evaluated on the original model, at most
    every: int = 16  # rounds between gradient steps, after those of rounds 1, 2, 4 and 8

    def refines(self, round: int) -> bool:
        """Whether a round of a search, counted from 1, takes gradient steps: they are dear, so not every one does."""
        return round & (round - 1) == 0 or round % self.every == 0


@dataclass(frozen=True)
class Memory:
    """Bytes that batches and open nodes may take."""

    batch_part: int = 8  # one batch of nodes may take one part in so many of the free memory
    always_held: int = 2**26  # bytes of open nodes that are kept however little is free
    most_held: int = 2**31  # bytes of open nodes at most
    held_rooms: int = 2  # open nodes may take so many times what a batch may
    coefficients: int = 2**22  # of hidden neurons bounded at a time on a smaller ball: they stay in the caches
    in_cache: int = 2**20  # coefficients of rows that are bounded under cuts at a time


@dataclass(frozen=True)
class Goals:
    """The first goals of a search, before there are costs to predict others from."""

    first_share: float = 0.06  # of the budget, for the final goal: easy inputs are done with it
    root_share: float = 0.1  # of the budget, for the bisection between root bounds that prove and those that do not
    root_nodes: int = 40  # a tree that needs more is not proven by its root bounds
    root_tries: int = 4  # goals of that bisection that are tried whatever they cost
    root_gap: float = 0.04  # of the least goal that failed: bisecting finer gains nothing
    rebuild: float = 0.97  # a goal that a nearer witness shrank to this part wants the tighter bounds of its own ball
    below_upper: float = 0.999  # tolerances below the witness lies the final goal: rounding must not leave it open
    finest: float = 0.25  # tolerances: goals nearer each other than this are not told apart
    overflow_gap: float = 2.0**-10  # of the goal: how near the largest ball without float32 overflow is looked for
    last_parts: tuple[float, ...] = (1.0, 0.3, 0.1)  # of the final goal: balls bounded once where time proved nothing
    last_share: float = 1.2  # of the budget, and …
    last_seconds: float = 2.0  # … CPU seconds more: what that may take in all, as much as runners allow for
    least_goal: float = 0.5  # of the distance of the witness: the final goal at least, however wide the tolerance


@dataclass(frozen=True)
class LadderRule:
    """How costs of proven goals choose the next one. Costs are shares of the budget."""

    leap: float = 2.0  # times the cost of the last proven goal, what the next one is predicted to cost
    at_most: float = 0.5  # of what is left: the most of that prediction
    at_least: float = 1.5  # times the last cost: the least of it …
    spare: float = 1.1  # … of which so many times must be left …
    dearer: float = 1.05  # … and always more than the last cost by this factor
    beyond_half: float = 0.01  # of the top: how far past the middle of what is left to prove a goal may lie
    same: float = 1.001  # ratio of goals that are the same: one that failed is forgotten when it is proven
    patience: float = 3.0  # times the prediction, what a goal may cost: predictions are rough
    first: float = 0.2  # of what is left, what a goal may cost before any is proven
    first_goal: float = 0.03  # of the top: the first goal where not even root bounds prove one
    least_cost: float = 0.02  # of the budget: what costs less says little about what comes next
    again: float = 1.5  # times what a goal had when it failed: with so much it may be asked for again
    near: float = 0.006  # of the top: a goal that failed within this of a proven one gets all the time that is left
    next_span: float = 1.1  # times the last goal: a top below this is the next step …
    next_share: float = 0.4  # … if it is predicted to cost less than this part of what is left
    far_share: float = 0.08  # the same for a top farther away
    top_share: float = 0.5  # of what is left, what the top may cost at least
    least_growth: float = 8.0  # costs grow with the goal at least to this power
    plain_growth: float = 30.0  # the same where trees of the margins alone prove goals: in convolutions nodes grew to
    # the power of 35 to 60
    most_growth: float = 400.0  # and at most to this one
    worse: float = 1.2  # times the power measured so far: it grows further up
    far_apart: float = 0.94  # goals whose ratio is at most this say how costs grow …
    apart: float = 0.98  # … or at most this, while there are no others


@dataclass(frozen=True)
class FrontierRule:
    """How goals of deep networks are chosen: which radius so many nodes per neuron can prove."""

    first: float = 16.0  # nodes per neuron at first: easy goals cost little
    near: float = 0.74  # of the layers: a proof that took more of them was near the frontier
    ahead: float = 0.15  # by how much the frontier is farther where a proof took few layers
    slower: float = 1.4  # the power by which a pass over more layers costs more
    fills: float = 0.85  # of what is left, what a pass may be predicted to cost
    power: float = 0.85  # to which the cost of a pass grows with the nodes per neuron
    many: float = 64.0  # nodes per neuron from which costs grow faster and are harder to predict:
    fills_many: float = 0.72  # `fills` from there on
    power_many: float = 1.15  # `power` from there on
    farthest: float = 8.0  # times the nodes per neuron, at most, from one goal to the next
    worthwhile: float = 1.15  # times the nodes per neuron, at least
    gain: float = 0.11  # over the root of the number of layers: the power to which the frontier grows with the nodes
    close: float = 0.008  # of a goal that failed: a proven one this near it is as good
    least_cost: float = 1e-6  # of the budget: a clock may see no cost at all


@dataclass(frozen=True)
class Settling:
    """What is done for one goal: a plain tree, then passes that settle the signs of hidden layers, then trees again."""

    large: int = 4000  # undecided neurons beyond which a tree costs more than it can prove
    tree_price: float = 3.0  # times what bounds of a ball took: condensing them and a first tree of the margins; where
    # that exceeds what is left of the budget there is no tree, but bounds of smaller balls
    dear_pass: float = 0.01  # of the budget: where bounds of a ball took more and say nothing, it gets no tree either
    shallow: int = 2  # layers with undecided neurons: with no more, plain trees are cheap and settling never hurts
    deep: int = 3  # layers with undecided neurons: with more, bounds are loose and passes dear
    plain_shallow: int = 600  # nodes of a plain tree of up to `shallow` layers before hidden signs are settled
    plain_each: float = 16.0  # or so many per undecided neuron after the first layer, where that is more: wide layers
    # take long to settle
    plain_deep: int = 64  # the same with more layers
    mixed: float = 0.4  # of the hidden neurons: where more really take both signs, settling them buys nothing
    slopes: float = 0.5  # of what a goal may cost: where hidden layers are not settled, slopes of their own for the
    # bounds of hidden neurons may cost so much, each end of an interval reckoned as a node (three times too dear)
    first_nodes: float = 50.0  # nodes per neuron at the first goal, in networks that are not deep
    growth: float = 1.25  # times as many after every proven goal
    most_nodes: float = 160.0  # and at most
    passes: int = 3  # over a deep network, where the goal is all that is asked or there is a bottleneck
    times: float = 3.0  # times the nodes per neuron in every further pass
    fits: float = 0.8  # or as many as fit into this part of the time that is left …
    worthwhile: float = 1.4  # … if they are at least so many times more
    layer_nodes: int = 160  # times the nodes per neuron, at least, for a deep network's layer with few open signs
    tried_nodes: int = 20  # times the nodes per neuron: nodes of the tree of the margins after a pass
    bottleneck_nodes: int = 200  # times the nodes per neuron: nodes of the tree that a bottleneck leaves
    early_nodes: int = 100  # nodes of the tree of the margins each time a layer is settled
    grace: float = 0.01  # of the budget, for that tree when time is up
    vain: float = 0.05  # of the budget, for bottlenecks from which nothing comes


@dataclass(frozen=True)
class HiddenTrees:
    """The trees that prove signs and bounds of hidden neurons, layer by layer."""

    interval_nodes: float = 0.5  # of the nodes per neuron, what one end of an interval may cost
    hopeless: float = 0.75  # of the neurons of a layer: where more signs could not be proven, later layers fail too
    slack: float = 0.1  # of the way from the bound to the value seen, what need not be proven
    earlier: float = 0.5  # power of (all neurons / those before a layer) times which its signs may cost: it is cheap
    most_earlier: float = 8.0  # and that factor at most
    shared: float = 50.0  # times the nodes per neuron, at most, where few objectives share a layer's nodes
    worst: float = 0.15  # of an objective's open nodes, those split next: its bound is that of the worst
    batch: int = 192  # nodes split at a time
    steps: int = 4  # of ascent per node: with more hardly fewer nodes are needed, with fewer sometimes many more
    pushes: int = 4  # gradient steps towards the least and largest values that a neuron takes
    looked_at: int = 64  # neurons of a layer, at most, from which the share of mixed ones is told
    samples: int = 64  # random corners of the ball where the values of neurons are looked at


@dataclass(frozen=True)
class Bottlenecks:
    """Layers with few live neurons, and the directions that keep their values from breaking a margin."""

    live: int = 4  # live neurons of a bottleneck at most
    boxes: int = 1000  # parts of the box of their values at most
    finest: float = 2.0**-7  # of the sides of that box: the smallest part
    starts: int = 3  # points from which the values that inputs attain are pushed towards a direction
    pushes: int = 12  # gradient steps of each
    shrink: float = 0.8  # how much shorter each is than the one before
    good: float = 0.8  # of the best direction's distance between a part and what is attained: as good a direction


@dataclass(frozen=True)
class Trees:
    """Branch and bound over the signs of neurons."""

    batch: int = 64  # nodes split at a time: more of them are not cheaper each
    first_steps: int = 12  # of ascent for the roots
    steps: int = 6  # of ascent for every other node
    rate: float = 0.3  # of the first step of α, which lies in [0, 1]
    decay: float = 0.85  # times which every later step is as long
    beta_rate: float = 0.3  # steps of β beside those of α, in units of the largest coefficient
    share_rate: float = 5.0  # steps of the weights λ of a clause's rows beside those of α, as powers of e
    least_share: float = 1e-6  # of a row: from 0 no product leads back
    refined: int = 32  # neurons of a node that its cut bounds anew, at least …
    refinement: int = 8000  # … or so many over the number of neurons, which is more where they are few
    beyond: tuple[tuple[float, float], ...] = ((1.001, 1e-7), (1.0 + 1e-6, 1e-8))
    # factors and steps past a certified radius where breaks are looked for: the nearest that one can be
    hull_neurons: int = 256  # undecided neurons of the first layer up to which hulls are tried: more was not measured
    hull_inputs: float = 0.125  # of all inputs: where first-layer neurons depend on so few, as in convolutions, hulls
    # are cheap however many neurons there are
    hulled: int = 60  # of them per bound, those whose triangles cost it most: with all a wide node takes twice as long
    hull_rounds: int = 6  # of scaling that find slopes of hulls: two are as dear, for a third of what six gain on top
    paired: int = 80  # neurons of every layer after the first that pair planes bound together two by two; 0: none
    paired_layers: int = 2  # with undecided neurons, at most: octagons of every layer of a deep network cost too much
    paired_least: int = 64  # undecided neurons after the first layer, at least: with fewer, trees are as small without
    paired_from: int = 16  # nodes of a tree after which it gets them: small trees close without
    tilt_rate: float = 0.02  # steps of the slopes of pair planes beside those of α, in units of their coefficients
    gap_weight: float = 0.01  # of how far a neuron's line is off at the minimiser, in its score for branching …
    lift_weight: float = 1e-3  # … and of its line's offset: little beside what the line costs the bound
    penalty: float = 1e4  # the largest multiplier that a leaf's linear program may propose, or the sum of those of
    # signs that contradict each other
    few_rows: int = 64  # neurons: with fewer, products with the condensed matrix cost little as they are
    most_rank: int = 256  # of a factorisation of that matrix
    rank_floor: float = 1e-10  # of the largest: smaller directions are rounding
    sparse_share: float = 0.1  # of the first layers' coefficients that are not 0: products then leave zeros out …
    sparse_size: int = 2**18  # … where there are so many coefficients or more


@dataclass(frozen=True)
class Reaches:
    """Thresholds that a quantity is proven to stay below in one ball, and radii that are found ball by ball."""

    first_share: float = 0.4  # of the budget, for the threshold just above the best witness
    step_share: float = 0.4  # of what is left, for every further threshold
    least_share: float = 0.02  # of the budget: with less left no further threshold is begun
    near: float = 0.6  # tolerances above the best witness lies the first threshold
    tried: float = 0.1  # tolerances: a threshold that failed so near a proven one leaves nothing to try between them
    ball_share: float = 0.3  # of what is left, for one ball of a radius
    next_ball: float = 0.3  # of a ball that failed: the next one, while none is proven
    least_ball: float = 1e-6  # of the largest ball: with one so small failed, none is tried any more
    accuracy: float = 1e-3  # relative, of a quantity that only has to be told from a threshold
    centre_balls: tuple[float, ...] = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003)
    # tolerances: balls in which witnesses are looked for when a slope is too steep at the input itself


@dataclass(frozen=True)
class Shells:
    """Shells around the ball where a network is affine, for slopes."""

    growth: float = 2.0  # times its inner radius, the outer radius of a shell at first
    thin: float = 1.05  # the same for a shell that is not halved further: its bounds would hardly be tighter
    far: float = 1.5  # times a threshold: from more than this a shell is brought down in steps, which are cheap there
    nodes: int = 300  # of a shell's first tree: halves of a shell that takes more are cheaper together
    half_nodes: float = 1.5  # times the nodes of a shell, those of each of its halves
    more_nodes: int = 4  # times the nodes of a thin shell when no threshold is left that they might prove
    smallest: float = 1e-9  # of ε: an affine ball smaller than this is taken for none
    affine_gap: float = 1.1  # ratio of the ends between which the radius of the affine ball is bisected


@dataclass(frozen=True)
class Probabilities:
    """Boxes of logit differences, for thresholds that a probability must not fall to."""

    splits: int = 4096  # of the boxes of one threshold, at most: the budget ends it long before
    small: float = 0.1  # of the sum of exponentials: one below this hardly counts
    exact: float = 1e-9  # the same: chords that lose less are not worth a split
    edge: float = 0.8  # of the way from the middle to an end of a box: no cut is farther out
    box_share: float = 0.34  # of what is left, for one box before it is split


@dataclass(frozen=True)
class InputBoxes:
    """Input splitting, for specifications over few inputs and for the values of bottlenecks."""

    few_inputs: int = 20  # inputs up to which boxes are split instead of signs of neurons
    batch: int = 256  # boxes bounded together, at most
    work: int = 2**26  # coefficients of all hidden neurons of a batch: few enough for memory
    held: int = 2**31  # bytes of open boxes at most
    slope: float = 0.05  # how much the bound's own coefficients count beside the losses that inputs cause
    width: float = 1e-9  # how much the width counts, where nothing else tells
    mixes: int = 8  # steps that improve the weights of a clause's rows
    mix_rate: float = 1.0  # of these steps
    climbs: int = 4  # steps that move the slopes of what stays open: nearly free beside bounding neurons
    narrow: float = 2.0**-44  # of the size of its ends: a box this thin is not split, rounding would eat the gain


@dataclass(frozen=True)
class SpecAttack:
    """The gradient attack on general specifications."""

    samples: int = 4096  # random points of a box of few inputs
    starts: int = 24  # of the descent, per clause
    runs: int = 256  # of the descent, in all
    steps: int = 40  # of each
    few_samples: int = 8  # random points of a box of many inputs
    few_starts: int = 4  # of the descent there, per clause
    step: float = 0.25  # of the box's width: the first step of a descent, falling with the square of what is left
    least_step: float = 1e-3  # of the box's width: what every step is longer
    refined: int = 16  # points of the search from which the attack starts again
    refined_steps: int = 20  # of that descent


@dataclass(frozen=True)
class FirstLook:
    """What is tried on a specification before torch is loaded."""

    most_weights: int = 2**22  # of all layers as matrices: a pass over more takes as long as loading torch; 0: no look
    samples: int = 256  # points of the box
    starts: int = 8  # of the descent, per clause
    runs: int = 64  # of the descent, in all
    steps: int = 20  # of each
    step: float = 0.25  # of the box's width: the first step of the descent, falling with the square of what is left
    least_step: float = 1e-3  # of the box's width: what every step is longer
    replays: int = 4  # of the deepest violations, per step


@dataclass(frozen=True)
class Tuning:
    """Every number that steers the search, in groups; the defaults are those that benchmarks were run with."""

    attacking: Attacking = Attacking()
    memory: Memory = Memory()
    goals: Goals = Goals()
    ladder: LadderRule = LadderRule()
    frontier: FrontierRule = FrontierRule()
    settling: Settling = Settling()
    hidden: HiddenTrees = HiddenTrees()
    bottlenecks: Bottlenecks = Bottlenecks()
    trees: Trees = Trees()
    intervals: IntervalTrees = IntervalTrees()
    curves: CurvedTrees = CurvedTrees()
    reaches: Reaches = Reaches()
    shells: Shells = Shells()
    probabilities: Probabilities = Probabilities()
    boxes: InputBoxes = InputBoxes()
    spec_attack: SpecAttack = SpecAttack()
    first_look: FirstLook = FirstLook()
    bounds: Bounding = Bounding()
    branching: Rule = largest_loss  # which neuron of a node is split

    @property
    def changes(self) -> str:
        """What differs from the defaults, in one stable line; empty when nothing does."""
        return ", ".join(_changes(self, Tuning(), ""))


def _changes(value: Any, default: Any, name: str) -> list[str]:
    if is_dataclass(value):
        parts = [(f"{name}.{f.name}".lstrip("."), f.name) for f in fields(value)]
        return [line for full, own in parts for line in _changes(getattr(value, own), getattr(default, own), full)]
    if value == default:
        return []
    return [f"{name}={getattr(value, '__qualname__', repr(value))}"]


DEFAULT = Tuning()
