"""The vocabulary of radii: frozen values that know no files, no networks and no solvers."""

from radii.problem.answer import Answer, Proof, Reason, Verdict, Witness
from radii.problem.ball import Ball, Domain
from radii.problem.instance import Instance
from radii.problem.norm import L1, L2, LINF, Norm
from radii.problem.properties import Classification, Lipschitz, Probability, Rows, Standard, StrongClassification
from radii.problem.property import Property
from radii.problem.quantity import Quantity
from radii.problem.query import Query
from radii.problem.radius import Radius, Status
from radii.problem.reach import Reach, ReachStatus, Result
from radii.problem.spec import Clause, OutputSpec, SpecQuery
from radii.problem.tolerance import Percent, Tolerance

__all__ = [
    "L1",
    "L2",
    "LINF",
    "Answer",
    "Ball",
    "Classification",
    "Clause",
    "Domain",
    "Instance",
    "Lipschitz",
    "Norm",
    "OutputSpec",
    "Percent",
    "Probability",
    "Proof",
    "Property",
    "Quantity",
    "Query",
    "Radius",
    "Reach",
    "ReachStatus",
    "Reason",
    "Result",
    "Rows",
    "SpecQuery",
    "Standard",
    "Status",
    "StrongClassification",
    "Tolerance",
    "Verdict",
    "Witness",
]
