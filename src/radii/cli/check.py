"""`radii check`: every stored row against the network, the data and its evidence; what is wrong is listed."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from radii.cli.console import emit_json, note
from radii.errors import InputError

if TYPE_CHECKING:
    from radii.study.audit import Finding

MAGIC = b"RADIIEV"  # how evidence files begin, in every version


def check(
    store: Annotated[str, typer.Argument(help="File or URL of the store, or an evidence file.")],
    classifier: Annotated[
        str | None, typer.Option(help="ONNX file (or zoo:NAME) that an evidence file speaks of.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Verify stored results again, without searching; exit code 1 when something is wrong, 3 when not all was seen.

    \b
    Example:
      radii check study.db
      radii check digit7.evidence --classifier net.onnx
    """
    if is_evidence(store):
        return _file(Path(store), classifier, json)
    if classifier is not None:
        raise InputError(f"--classifier: expected an evidence file to check against it, got {store}")
    from radii.store import open_store
    from radii.study.audit import audit

    with open_store(store, create=False) as opened:
        found = audit(opened)
    code = 1 if found.wrong else 3 if found.unchecked or found.missing else 0
    if json:
        emit_json(asdict(found))
        return code
    for one in found.wrong:
        typer.echo(f"wrong: {_place(one)}: {one.message}")
    for one in found.missing:
        typer.echo(f"missing: {_place(one)}: {one.message}")
    for line, count in Counter(one.message for one in found.unchecked).items():
        note(f"not checked ({count}): {line}")
    if found.unsupported or found.claims:
        typer.echo(
            f"taken on trust: {found.unsupported} lower ends rest on nothing stored (keep evidence with `evidence: "
            f"true`), {found.claims} on another tool's word"
        )
    if found.reach_proofs:
        typer.echo(f"taken on trust: {found.reach_proofs} proven ends of reaches, whose proofs are not recorded")
    radii = found.records - found.reaches
    kinds = [f"{radii} radii"] if radii or not found.reaches else []
    kinds += [f"{found.reaches} reaches"] if found.reaches else []
    typer.echo(
        f"{' and '.join(kinds)}: {found.predicted} inputs predicted again ({found.misclassified} misclassified), "
        f"{found.witnesses} witnesses replayed, {found.proofs} proofs ({found.evidence} with stored evidence: "
        f"{found.confirmed} confirmed, {found.refused} refused), "
        f"{len(found.wrong)} wrong, {len(found.unchecked)} not checked, {len(found.missing)} missing"
    )
    return code


def is_evidence(name: str) -> bool:
    """Whether this is an evidence file and not a store."""
    path = Path(name)
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC or path.suffix == ".evidence"


def _file(path: Path, classifier: str | None, json: bool) -> int:
    """Checks one evidence file; a file that is damaged or proves nothing is refused with exit code 1."""
    from radii import api
    from radii._files import read_bytes
    from radii.evidence import check as check_evidence
    from radii.evidence import read_claim

    if classifier is None:
        raise InputError(f"{path}: expected --classifier with the network that the evidence speaks of, got none")
    data = read_bytes(path, "an evidence file", lambda message: InputError(f"{path}: {message}"))
    try:
        said = read_claim(data)
        low, high = said.domain
        net = api.load_classifier(classifier, preprocessing=(said.mean, said.std), domain=(low, high))
        claim = check_evidence(data, net)
    except InputError as error:
        if json:
            emit_json({"confirmed": False, "reason": str(error)})
        else:
            typer.echo(f"refused: {error}")
        return 1
    if json:
        emit_json({"confirmed": True, **claim.plain()})
        return 0
    other = "any other class" if claim.target is None else f"class {claim.target}"
    typer.echo(
        f"confirmed: no input within {claim.radius!r} ({claim.norm}, {claim.arithmetic} arithmetic) takes the input "
        f"{claim.instance} from class {claim.label} to {other}"
    )
    return 0


def _place(one: Finding) -> str:
    """Which row a finding is about; a plan has no row."""
    return f"{one.classifier}, {one.dataset} input {one.index}" if one.key else "plan"
