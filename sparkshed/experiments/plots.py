"""Pictures of results."""

from __future__ import annotations

from pathlib import Path

from sparkshed.experiments.catalogue import Experiment
from sparkshed.experiments.result import Result


def draw(experiment: Experiment, result: Result, folder: Path) -> Path:
    """Draw a result into `<folder>/<name>.png`; returns the path."""
    # Neither pyplot nor a display is needed.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    picture = experiment.picture
    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    lines: dict[str, list[tuple[object, float]]] = {}
    for row in result.rows:
        for y in picture.ys:
            words = [str(row[name]) for name in picture.by] + ([y] if len(picture.ys) > 1 else [])
            lines.setdefault(", ".join(words), []).append((row[picture.x], row[y]))
    for label, points in lines.items():
        xs, ys = zip(*points, strict=True)
        if picture.bars:
            axes.bar([str(x) for x in xs], ys)
            axes.tick_params(axis="x", labelrotation=30)
        else:
            axes.plot(xs, ys, marker="o", markersize=3, label=label)
    if picture.log:
        axes.set_yscale("log")
    axes.set_xlabel(picture.x)
    axes.set_ylabel(", ".join(picture.ys) if len(picture.ys) < 3 else "")
    axes.set_title(f"{result.name}: {experiment.title}")
    if len(lines) > 1:
        # Looking for the best place takes long where there are many lines.
        if len(lines) < 8:
            axes.legend(fontsize="x-small", loc="best")
        else:
            figure.set_figheight(4.0 + 0.08 * len(lines))
            figure.legend(fontsize="xx-small", loc="outside lower center", ncols=4)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{result.name}.png"
    figure.savefig(path, dpi=100)
    return path
