"""solve: one mixed-integer program on HiGHS, SCIP or Gurobi, within limits, with word of every solution and bound."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import numpy as np
import psutil
from numpy.typing import NDArray

from radii._check import choice, optional
from radii.verifiers._mip_model import Mip

Vector = NDArray[np.float64]

TOLERANCE = 1e-9  # feasibility, integrality and dual feasibility asked of every solver

PACKAGES = {"highs": ("highspy", "milp"), "scip": ("pyscipopt", "scip"), "gurobi": ("gurobipy", "gurobi")}


@dataclass(frozen=True)
class Limits:
    """What one solve may use; `stop(dual_bound, solution)` says when the answer is good enough."""

    seconds: float
    memory: int | None
    nodes: int | None
    spent: Callable[[], float]
    stop: Callable[[float, Vector | None], bool]


@dataclass(frozen=True, eq=False)
class Solved:
    """How a solve ended: `end` is optimal, infeasible, stopped, time, memory, nodes or error."""

    end: str
    bound: float = -math.inf
    x: Vector | None = None
    nodes: int = 0
    detail: str = ""


def solver_version(name: str) -> str:
    """The solver's package and version, such as "highspy 1.15.1"."""
    package = PACKAGES[choice(name, "milp solver", PACKAGES)][0]
    try:
        return f"{package} {metadata.version(package)}"
    except metadata.PackageNotFoundError:
        return package


def solve(name: str, mip: Mip, limits: Limits) -> Solved:
    """The optimum of the program, or what was known when a limit was met."""
    package, extra = PACKAGES[choice(name, "milp solver", PACKAGES)]
    module = optional(package, extra, f"the {name} back end of milp")
    try:
        return {"highs": _highs, "scip": _scip, "gurobi": _gurobi}[name](module, mip, limits)
    except MemoryError:
        return Solved("memory", detail="out of memory")
    except Exception as error:  # whatever a solver's library throws is its failure, and an answer
        return Solved("error", detail=f"{type(error).__name__}: {error}")


def _resident() -> int:
    return int(psutil.Process(os.getpid()).memory_info().rss)


def _crowd() -> float:
    """How many processes share a core now, at least 1: a CPU second takes so many seconds of wall clock."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return max(1.0, load / (os.cpu_count() or 1))


class _Watch:
    """Asks at each call whether to go on, and remembers why not."""

    def __init__(self, mip: Mip, limits: Limits) -> None:
        self.limits, self.inputs = limits, mip.inputs
        self.end, self.bound = "", -math.inf

    def __call__(self, bound: float, solution: Any = None) -> bool:
        if self.end:
            return True
        if math.isfinite(bound):
            self.bound = max(self.bound, bound)
        x = None if solution is None else np.asarray(solution, dtype=np.float64)[: self.inputs]
        if self.limits.stop(self.bound, x):
            self.end = "stopped"
        elif self.limits.spent() >= self.limits.seconds:
            self.end = "time"
        elif self.limits.memory is not None and _resident() > self.limits.memory:
            self.end = "memory"
        return bool(self.end)


def _highs(highspy: Any, mip: Mip, limits: Limits) -> Solved:
    h = highspy.Highs()
    options = {
        "output_flag": False,
        "threads": 1,
        "random_seed": 0,
        "mip_rel_gap": 0.0,
        "mip_abs_gap": 1e-9,
        "mip_feasibility_tolerance": TOLERANCE,
        "primal_feasibility_tolerance": TOLERANCE,
        "dual_feasibility_tolerance": TOLERANCE,
        # The budget is CPU time, which the callbacks watch; this wall clock only backs them up.
        "time_limit": 2 * _crowd() * max(limits.seconds - limits.spent(), 0.0) + 0.1,
        "mip_max_nodes": limits.nodes or 2**31 - 1,
    }
    for key, value in options.items():
        h.setOptionValue(key, value)
    h.passModel(_highs_model(highspy, mip))
    watch = _Watch(mip, limits)

    def look(event: Any) -> None:
        if watch(event.data_out.mip_dual_bound):
            event.interrupt()

    def found(event: Any) -> None:
        watch(event.data_out.mip_dual_bound, event.data_out.mip_solution)

    h.cbMipInterrupt.subscribe(look)
    h.cbMipImprovingSolution.subscribe(found)
    h.run()
    info, status = h.getInfo(), h.getModelStatus()
    names = {
        highspy.HighsModelStatus.kOptimal: "optimal",
        highspy.HighsModelStatus.kInfeasible: "infeasible",
        highspy.HighsModelStatus.kTimeLimit: "time",
        highspy.HighsModelStatus.kSolutionLimit: "nodes",
        highspy.HighsModelStatus.kIterationLimit: "nodes",
    }
    end = watch.end or names.get(status, "error")
    x = np.asarray(h.getSolution().col_value)[: mip.inputs] if math.isfinite(info.objective_function_value) else None
    bound = max(watch.bound, float(info.mip_dual_bound)) if math.isfinite(info.mip_dual_bound) else watch.bound
    if not mip.integer.any() and end == "optimal":
        bound = float(info.objective_function_value)
    return Solved(end, bound, x if x is not None and x.size else None, max(int(info.mip_node_count), 0), str(status))


def _highs_model(highspy: Any, mip: Mip) -> Any:
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = mip.low.size, mip.row_low.size
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = mip.cost, mip.low, mip.high
    lp.row_lower_ = np.where(np.isneginf(mip.row_low), -highspy.kHighsInf, mip.row_low)
    lp.row_upper_ = np.where(np.isposinf(mip.row_high), highspy.kHighsInf, mip.row_high)
    columns = mip.rows.tocsc()
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = columns.indptr, columns.indices, columns.data
    kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
    lp.integrality_ = [kinds[int(i)] for i in mip.integer]
    return lp


def _scip(pyscipopt: Any, mip: Mip, limits: Limits) -> Solved:
    model = pyscipopt.Model()
    model.hideOutput()
    left = max(limits.seconds - limits.spent(), 0.01)
    settings: dict[str, Any] = {
        "limits/time": min(left, 1e20),
        "timing/clocktype": 1,  # CPU seconds
        "limits/gap": 0.0,
        "limits/absgap": 0.0,
        "numerics/feastol": TOLERANCE,
        "numerics/dualfeastol": TOLERANCE,
        "misc/catchctrlc": False,
    }
    if limits.memory is not None:
        settings["limits/memory"] = max((limits.memory - _resident()) / 2**20, 1.0)
    if limits.nodes is not None:
        settings["limits/totalnodes"] = limits.nodes
    model.setParams(settings)
    v = [
        model.addVar(lb=float(l), ub=float(u), vtype="B" if i else "C", obj=float(c))
        for l, u, i, c in zip(mip.low, mip.high, mip.integer, mip.cost)
    ]
    rows = mip.rows
    for i in range(rows.shape[0]):
        at = slice(rows.indptr[i], rows.indptr[i + 1])
        terms = pyscipopt.quicksum(float(a) * v[j] for a, j in zip(rows.data[at], rows.indices[at]))
        low, high = float(mip.row_low[i]), float(mip.row_high[i])
        if low == high:
            model.addCons(terms == low)
            continue
        if math.isfinite(low):
            model.addCons(terms >= low)
        if math.isfinite(high):
            model.addCons(terms <= high)
    watch = _Watch(mip, limits)
    handler = _scip_handler(pyscipopt, watch, v[: mip.inputs])
    model.includeEventhdlr(handler, "radii", "bounds and solutions as they come")
    model.optimize()
    names = {"optimal": "optimal", "infeasible": "infeasible", "timelimit": "time", "memlimit": "memory"}
    names |= {"totalnodelimit": "nodes", "nodelimit": "nodes"}
    status = str(model.getStatus())
    x = np.array([model.getVal(one) for one in v[: mip.inputs]]) if model.getNSols() else None
    bound = float(model.getDualbound())
    bound = max(watch.bound, bound) if abs(bound) < 1e19 else watch.bound
    return Solved(watch.end or names.get(status, "error"), bound, x, int(model.getNTotalNodes()), status)


def _scip_handler(pyscipopt: Any, watch: _Watch, inputs: list[Any]) -> Any:
    events = (pyscipopt.SCIP_EVENTTYPE.BESTSOLFOUND, pyscipopt.SCIP_EVENTTYPE.NODESOLVED)

    class Handler(pyscipopt.Eventhdlr):  # type: ignore[misc]  # the base class is only there once SCIP is
        def eventinit(self) -> None:
            for event in events:
                self.model.catchEvent(event, self)

        def eventexit(self) -> None:
            for event in events:
                self.model.dropEvent(event, self)

        def eventexec(self, event: Any) -> None:
            solution = None
            if event.getType() == events[0]:
                best = self.model.getBestSol()
                solution = [self.model.getSolVal(best, one) for one in inputs]
            bound = float(self.model.getDualbound())
            enough = watch(bound if abs(bound) < 1e19 else -math.inf, solution)
            # SCIP refuses to be interrupted between its stages; the next event will do.
            if enough and self.model.getStage() == pyscipopt.SCIP_STAGE.SOLVING:
                self.model.interruptSolve()

    return Handler()


def _gurobi(gurobipy: Any, mip: Mip, limits: Limits) -> Solved:
    grb = gurobipy.GRB
    env = gurobipy.Env(params={"OutputFlag": 0})
    try:
        model = gurobipy.Model(env=env)
        model.Params.Threads = 1
        model.Params.FeasibilityTol = model.Params.OptimalityTol = model.Params.IntFeasTol = TOLERANCE
        model.Params.MIPGap = model.Params.MIPGapAbs = 0.0
        model.Params.TimeLimit = 2 * max(limits.seconds - limits.spent(), 0.0) + 0.1
        if limits.nodes is not None:
            model.Params.NodeLimit = limits.nodes
        if limits.memory is not None:
            model.Params.SoftMemLimit = max((limits.memory - _resident()) / 1e9, 0.01)
        kinds = np.where(mip.integer, grb.BINARY, grb.CONTINUOUS)
        v = model.addMVar(mip.low.size, lb=mip.low, ub=mip.high, obj=mip.cost, vtype=kinds)
        lower, upper = np.isfinite(mip.row_low), np.isfinite(mip.row_high)
        model.addConstr(mip.rows[lower] @ v >= mip.row_low[lower])
        model.addConstr(mip.rows[upper] @ v <= mip.row_high[upper])
        watch = _Watch(mip, limits)
        every = v.tolist()

        def look(m: Any, where: int) -> None:
            enough = False
            if where == grb.Callback.MIP:
                enough = watch(m.cbGet(grb.Callback.MIP_OBJBND))
            elif where == grb.Callback.MIPSOL:
                enough = watch(m.cbGet(grb.Callback.MIPSOL_OBJBND), m.cbGetSolution(every[: mip.inputs]))
            if enough:
                m.terminate()

        model.optimize(look)
        names = {grb.OPTIMAL: "optimal", grb.INFEASIBLE: "infeasible", grb.TIME_LIMIT: "time", grb.MEM_LIMIT: "memory"}
        names[grb.NODE_LIMIT] = "nodes"
        x = v.X[: mip.inputs] if model.SolCount else None
        bound = max(watch.bound, float(model.ObjBound)) if abs(model.ObjBound) < 1e99 else watch.bound
        return Solved(
            watch.end or names.get(model.Status, "error"), bound, x, int(model.NodeCount), f"status {model.Status}"
        )
    finally:
        env.dispose()
