"""Draw the learning curves that train.py has written: mean and spread over the seeds, one panel an environment.

    python examples/plot.py [FOLDER] [--png FILE]

Prints the returns per seed and the picture's path.
"""

import argparse
import csv
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

LAST_EPISODES = 20  # as in train.py
POINTS = 200  # of each drawn curve


def read_curves(folder: Path) -> dict[str, dict[int, Array]]:
    """Return the learning curves in `folder` by environment and seed.

    A curve has two columns: the step, and the return of the episode that ended there. One without rows is left out.
    """
    curves: dict[str, dict[int, Array]] = {}
    for path in sorted(folder.glob("*.csv")):
        if not (name := re.fullmatch(r"(.+)-seed(\d+)", path.stem)):
            continue
        with path.open(encoding="utf-8", newline="") as file:
            rows = [(float(row["step"]), float(row["episode_return"])) for row in csv.DictReader(file)]
        if rows:
            curves.setdefault(name[1], {})[int(name[2])] = np.array(rows)
    return {env_id: dict(sorted(seeds.items())) for env_id, seeds in sorted(curves.items())}


def final_returns(folder: Path) -> dict[str, dict[int, float]]:
    """Return the mean return of the last episodes by environment and seed."""
    return {
        env_id: {seed: float(curve[-LAST_EPISODES:, 1].mean()) for seed, curve in seeds.items()}
        for env_id, seeds in read_curves(folder).items()
    }


def smoothed(curve: Array) -> Array:
    """Return the curve with each return replaced by the mean of the last episodes up to it."""
    totals = np.concatenate([[0.0], curve[:, 1].cumsum()])
    ends = np.arange(1, len(totals))
    starts = np.maximum(ends - LAST_EPISODES, 0)
    return np.column_stack([curve[:, 0], (totals[ends] - totals[starts]) / (ends - starts)])


def draw(axes: Any, env_id: str, seeds: Mapping[int, Array]) -> None:
    """Draw one environment: every seed thin, and mean, lowest and highest over the seeds where all have data."""
    curves = [smoothed(curve) for curve in seeds.values()]
    steps = np.linspace(max(curve[0, 0] for curve in curves), min(curve[-1, 0] for curve in curves), POINTS)
    returns = np.array([np.interp(steps, curve[:, 0], curve[:, 1]) for curve in curves])
    for curve in curves:
        axes.plot(curve[:, 0], curve[:, 1], color="tab:blue", alpha=0.25, linewidth=0.8)
    count = f"{len(curves)} seed{'s' if len(curves) > 1 else ''}"
    axes.plot(steps, returns.mean(axis=0), color="tab:blue", linewidth=2, label=f"mean of {count}")
    spread = returns.min(axis=0), returns.max(axis=0)
    axes.fill_between(steps, *spread, color="tab:blue", alpha=0.2, label="lowest to highest")
    axes.set(title=env_id, xlabel="environment steps", ylabel=f"return (mean of {LAST_EPISODES} episodes)")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")


def plot(folder: Path, png: Path) -> None:
    """Draw the curves of `folder` into the file `png`."""
    import matplotlib as mpl  # noqa: PLC0415 - slow to import; final_returns() does without

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    curves = read_curves(folder)
    figure, axes = plt.subplots(1, len(curves), figsize=(6.4 * len(curves), 4.2), squeeze=False, layout="constrained")
    for panel, (env_id, seeds) in zip(axes[0], curves.items(), strict=True):
        draw(panel, env_id, seeds)
    figure.savefig(png, dpi=150)
    plt.close(figure)


def main(argv: list[str] | None = None) -> None:
    """Plot as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("runs"), help="default: %(default)s")
    parser.add_argument("--png", type=Path, help="the picture (default: FOLDER/curves.png)")
    args = parser.parse_args(argv)
    results = final_returns(args.folder)
    if not results:
        parser.exit(2, f"There are no learning curves in {args.folder}: examples/train.py writes them.\n")
    print(f"{'environment':<16} {'seed':>4} {'return':>8}   (mean of the last {LAST_EPISODES} episodes)")
    for env_id, seeds in results.items():
        for seed, episode_return in seeds.items():
            print(f"{env_id:<16} {seed:>4} {episode_return:>8.1f}")
    png = args.png or args.folder / "curves.png"
    png.parent.mkdir(parents=True, exist_ok=True)
    plot(args.folder, png)
    print(png)


if __name__ == "__main__":
    main()
