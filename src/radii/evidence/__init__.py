"""Evidence: proofs of radii that can be stored, and a checker that re-verifies them without searching."""

from radii.evidence.check import check, read_claim
from radii.evidence.claim import Claim

__all__ = ["Claim", "check", "read_claim"]
