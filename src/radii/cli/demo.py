"""`radii demo`: distributions of radii of three shipped networks, in under a minute."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from radii._html import cell
from radii.cli.console import PARTIAL, counted, note, stoppable, table, writable

if TYPE_CHECKING:
    from radii.data import Dataset
    from radii.models.classifier import Classifier
    from radii.report.distribution import Distribution
    from radii.report.figures import Fooled
    from radii.store import Store

_POINTS = (0.01, 0.03, 0.1)
_NEXT = """
Try next:
  radii guarantee run zoo:mnist5k-adversarial --data mnist5k --eps 0.05 --inputs 100 --verifier envelope
  radii radius zoo:mnist5k-conv --data mnist5k --index 7 --norm l2 --seconds 10
  radii radius zoo:mnist5k-adversarial --data mnist5k --index 3 --target 8 --json
  radii radius YOUR.onnx --data YOUR.npz --index 0:10
  radii stats {database} --compare mnist5k-standard,mnist5k-adversarial
  python -c "import radii; help(radii.distribution)"
"""


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the results.")] = Path("radii-demo"),
    inputs: Annotated[int, typer.Option(min=1, max=1000, help="How many test images.")] = 20,
    seconds: Annotated[float, typer.Option(help="CPU seconds for each image and network.")] = 1.0,
) -> int:
    """Find the radii of three small networks on embedded digits, and write a report, a table and pictures.

    \b
    Example:
      radii demo --output radii-demo
    """
    from radii import api, zoo
    from radii.report.content import gather
    from radii.report.page import Options, write_page
    from radii.store import Store, export, radii_frame

    begun = time.perf_counter()
    folder = writable(output)
    data = api.load_dataset("mnist5k", split="test")[:inputs]
    nets = [api.load_classifier(zoo.PREFIX + name) for name in zoo.cards()]
    database = folder / "demo.db"
    for old in folder.glob("demo.db*"):  # from nothing, so that the time it prints is that of all its work
        old.unlink()
    note(f"{len(nets)} networks x {len(data)} test images, at most {seconds:g} CPU s per image")
    with Store(database) as store:
        with stoppable() as ending:
            for net in nets:
                spent = api.distribution(net, data, store=store, seconds=seconds).summary().cpu_seconds
                note(f"{net.name}: {counted(len(data), 'image')} in {spent:.1f} CPU s")
        content = gather([store], title="radii demo")
        if content.empty:
            raise KeyboardInterrupt  # nothing to show
        found = [content.distributions[net.name] for net in nets if net.name in content.distributions]
        export(radii_frame(store), "csv", folder / "radii.csv")
        fooled = [_most_fragile(net, data, store) for net in nets]
        write_page(content, folder / "report.html", Options(data=(data,)))
    written = ["report.html", "radii.csv", "demo.db", *_pictures(folder, found, fooled)]
    typer.echo(table(*_overview(found)))
    typer.echo(
        f"\n{max(map(len, found))} images each; robust accuracy is [proven, not broken]: the truth lies between."
    )
    typer.echo(f"Of unseen digits, with 95 % confidence, the share that is robust at {_POINTS[0]:g} is")
    for dist in found:
        low, high = (float(limit) for limit in dist.guarantee(0.95).at(_POINTS[0]))
        typer.echo(f"  between {low:.0%} and {high:.0%} for {dist.name}")
    typer.echo(f"\nWritten to {folder}: {', '.join(written)}")
    typer.echo(_NEXT.rstrip().format(database=database))
    note(f"{time.perf_counter() - begun:.0f} s")
    if not ending.stopped:
        return 0
    note(f"radii: partial: stopped, {sum(map(len, found))} of {len(nets) * len(data)} radii are done and shown")
    return PARTIAL


def _overview(found: list[Distribution]) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Headers and rows of the table that the demo prints."""
    headers = ("network", "accuracy", "closed", "smallest", "median", *(f"robust at {e:g}" for e in _POINTS), "CPU s")
    rows = []
    for dist in found:
        facts = dist.summary()
        middle = dist.quantile(0.5)
        curve = [dist.robust_accuracy(e) for e in _POINTS]
        rows.append(
            (
                dist.name,
                f"{facts.accuracy:.0%}",
                f"{facts.closed} of {facts.correct}",
                facts.lowest,
                f"[{middle.lower:.4f}, {cell(middle.upper)}]",
                *(f"[{c.proven:.0%}, {c.not_broken:.0%}]" for c in curve),
                facts.cpu_seconds,
            )
        )
    return headers, rows


def _most_fragile(net: Classifier, data: Dataset, store: Store) -> Fooled | None:
    """The correctly classified image with the nearest witness; None when no witness was found."""
    from radii.report.figures import Fooled
    from radii.store import Selection

    records = [
        (record.radius.upper, record.radius.witness, record.unit.instance)
        for record in store.records(Selection(classifier=(net.name,)))
        if not record.radius.misclassified and record.radius.upper is not None and record.radius.witness is not None
    ]
    if not records:
        return None
    epsilon, witness, where = min(records, key=lambda found: found[0])
    names = data.class_names
    original = next(instance.x for instance in data if instance.index == where.index)
    return Fooled(
        net.name, original, witness.x.reshape(data.shape), names[where.label], names[witness.prediction], epsilon
    )


def _pictures(folder: Path, found: list[Distribution], fooled: list[Fooled | None]) -> list[str]:
    """The names of the pictures that were written."""
    from radii.report import figures

    curves, axes = figures.new_figure()
    figures.robust_accuracy_curve(sorted(found, key=lambda dist: dist.name), axes)  # the colours of the report
    drawn = {"robust-accuracy.png": curves}
    if examples := [example for example in fooled if example is not None]:
        drawn["fooled.png"] = figures.fooled_grid(examples)
    for name, figure in drawn.items():
        figures.save(figure, folder / name)
    return list(drawn)
