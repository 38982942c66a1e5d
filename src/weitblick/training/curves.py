"""The training curves of a stage as a picture: loss, and how open and how sparse the context attention is."""

from __future__ import annotations

from pathlib import Path

from weitblick.extras import extra
from weitblick.files import atomic_path
from weitblick.training.logs import read_log


def draw_curves(log: Path, picture: Path) -> None:
    with extra("plots"):
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt

    entries = read_log(log)
    train = [e for e in entries if e["kind"] == "train"]
    dev = [e for e in entries if e["kind"] == "dev"]
    panels = [
        ("perplexity", [("train", train, "perplexity"), ("dev", dev, "dev_perplexity"),
                        ("dev, context removed", dev, "dev_perplexity_without_context"),
                        ("dev, random context", dev, "dev_perplexity_random_context")]),
        ("context's share of the gate", [("train", train, "context_share"), ("dev", dev, "context_share")]),
        ("sentences attended", [("train", train, "support"), ("dev", dev, "support")]),
    ]  # fmt: skip
    panels = [(title, [c for c in curves if any(c[2] in e for e in c[1])]) for title, curves in panels]
    panels = [(title, curves) for title, curves in panels if curves]
    if not panels:
        return
    figure, axes = plt.subplots(1, len(panels), figsize=(5 * len(panels), 3.6), squeeze=False)
    for axis, (title, curves) in zip(axes[0], panels, strict=True):
        for label, source, key in curves:
            points = [(e["update"], e[key]) for e in source if key in e]
            axis.plot(*zip(*points, strict=True), label=label, linewidth=1.2, marker="." if source is dev else None)
        if title == "perplexity":
            axis.set_yscale("log")
        axis.set_title(title, fontsize=10)
        axis.set_xlabel("update")
        axis.grid(alpha=0.3)
        axis.legend(fontsize=8)
    figure.tight_layout()
    with atomic_path(picture) as temporary:
        figure.savefig(temporary, dpi=110)
    plt.close(figure)
