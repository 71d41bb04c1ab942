"""Learning curves as a picture: accuracies, loss and ε over the epochs."""

from __future__ import annotations

import io
from collections.abc import Sequence

from radii.train.loop import Epoch

LINES = (("clean", "#1f5fa8", "-"), ("attacked", "#c05a00", "--"), ("certified", "#2a7d46", "-."))


def learning_curve(history: Sequence[Epoch], title: str) -> bytes:
    """A PNG of the accuracies on held-out inputs (left axis), and of loss and ε (below)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 5.2), layout="constrained")
    FigureCanvasAgg(figure)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[2, 1])
    epochs = [row.epoch for row in history]
    for name, colour, style in LINES:
        shares = [getattr(row, name) for row in history]
        if any(share is not None for share in shares):
            values = [float("nan") if share is None else 100 * share for share in shares]
            above.plot(epochs, values, style, color=colour, label=name, marker=".")
    above.set_ylabel("held-out inputs (%)")
    above.set_ylim(0, 100)
    above.set_title(title)
    above.legend(loc="lower right")
    below.plot(epochs, [row.loss for row in history], color="#555555", marker=".")
    below.set_ylabel("training loss")
    below.set_xlabel("epoch")
    right = below.twinx()
    right.plot(epochs, [row.epsilon for row in history], ":", color="#7a3fa0")
    right.set_ylabel("ε of the method", color="#7a3fa0")
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=120)
    return stream.getvalue()
