"""Looks for tiny ensembles whose largest sum of losses misses the value (footnote 6 of Gross et al. 2021).

    python scripts/find_missed_value.py --tries 40

Random linear classifiers of two inputs and two classes, one point, L1. For each ensemble the MILP is asked twice, with
as many attacks as members: for the largest sum of losses over members (MaxMILP) and for the largest value. A miss is
strict when the largest sum among attacks that get the value is smaller: then no attack has both.
"""

from __future__ import annotations

import argparse

import numpy as np
from onnx import TensorProto, helper, numpy_helper

import radii
from radii.models import Classifier, load_classifier
from radii.problem import Instance

EPSILON = 1.1  # no multiple of the weights' and biases' halves: nothing errs on the very border of the ball


def linear(weight: list[float], bias: float) -> Classifier:
    """Class 1 where weight·x ≥ bias."""
    values = [np.array([[0.0, 0.0], weight], np.float32), np.array([bias, 0.0], np.float32)]
    graph = helper.make_graph(
        [helper.make_node("Gemm", ["x", "w", "b"], ["y"], transB=1)],
        "linear",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 2])],
        [numpy_helper.from_array(value, name) for value, name in zip(values, "wb")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    return load_classifier(
        model.SerializeToString(), domain=None, name=f"{weight[0]:g} x0 + {weight[1]:g} x1 >= {bias:g}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tries", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng, point, missed, strict = np.random.default_rng(options.seed), Instance(np.zeros(2, np.float32), 0), 0, 0
    for number in range(options.tries):
        count = int(rng.integers(2, 5))
        said = [(rng.integers(-4, 5, 2) / 2, rng.integers(1, 5) / 2) for _ in range(count)]
        members = list({(*w, b): linear([float(v) for v in w], float(b)) for w, b in said}.values())
        if len(members) < 2:
            continue
        asked = {"norm": "l1", "epsilons": EPSILON, "method": "milp", "attacks": len(members), "seconds": 20}
        summed = radii.ensemble(members, [point], objective="sum", **asked)
        fair = radii.ensemble(members, [point], objective="value", **asked)
        lost = fair.value(EPSILON)[0] - summed.value(EPSILON)[0]
        if lost <= 1e-6:
            continue
        missed += 1
        both = radii.ensemble(members, [point], objective="sum", alpha=fair.value(EPSILON)[0], **asked)
        sums = [float(game.attack(EPSILON).losses.sum()) for game in (summed, both)]
        if sums[0] - sums[1] > 1e-6:
            strict += 1
            if strict > 1:
                continue
            print(f"ensemble {number}: {'; '.join(one.name for one in members)}")
            losses = [", ".join(f"{v:.3g}" for v in game.attack(EPSILON).losses) for game in (summed, fair)]
            print(f"  largest sum: losses {losses[0]}, sum {sums[0]:.3g}, value {summed.value(EPSILON)[0]:.3g}")
            print(f"  largest value: losses {losses[1]}, sum {sums[1]:.3g} at most, value {fair.value(EPSILON)[0]:.3g}")
    print(f"the largest sum missed the value of {missed} of {options.tries} ensembles, strictly of {strict}")


if __name__ == "__main__":
    main()
