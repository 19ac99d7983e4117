"""The plot of learning curves, and the table of returns."""

from pathlib import Path

import numpy as np
import pytest

from examples import plot, train


@pytest.fixture
def curves(tmp_path: Path) -> Path:
    """Two seeds of one environment, one of another; a run without an episode, and a table of something else."""
    for name, returns in (("A-v1-seed1", [0, 10]), ("A-v1-seed2", [20] * 30), ("B-v1-seed10", [0] * 20 + [7] * 20)):
        train.write_curve(tmp_path / f"{name}.csv", [(8 * (i + 1), float(r)) for i, r in enumerate(returns)])
    train.write_curve(tmp_path / "C-v1-seed1.csv", [])
    (tmp_path / "notes.csv").write_text("a,b\n1,2\n")
    return tmp_path


def test_final_returns_are_means_of_the_last_episodes_by_environment_and_seed(curves: Path) -> None:
    assert plot.final_returns(curves) == {"A-v1": {1: 5.0, 2: 20.0}, "B-v1": {10: 7.0}}


def test_a_smoothed_curve_is_the_mean_of_the_last_episodes_at_each_of_them() -> None:
    returns = np.random.default_rng(3).standard_normal(50)
    curve = np.column_stack([np.arange(50.0), returns])
    expected = [returns[max(0, i - 19) : i + 1].mean() for i in range(50)]
    np.testing.assert_allclose(plot.smoothed(curve)[:, 1], expected)


def test_the_plot_prints_the_returns_and_the_path_of_its_picture(
    curves: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plot.main([str(curves)])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[1:-1]] == [
        ["A-v1", "1", "5.0"],
        ["A-v1", "2", "20.0"],
        ["B-v1", "10", "7.0"],
    ]
    assert Path(lines[-1]).read_bytes().startswith(b"\x89PNG")


def test_a_panel_says_what_it_shows() -> None:
    from matplotlib.figure import Figure  # noqa: PLC0415 - slow to import

    axes = Figure().subplots()
    plot.draw(axes, "A-v1", {1: np.array([[8.0, 1.0], [80.0, 3.0]]), 2: np.array([[8.0, 3.0], [80.0, 5.0]])})
    assert axes.get_title() == "A-v1"
    assert axes.get_xlabel()
    assert axes.get_ylabel()
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["mean of 2 seeds", "lowest to highest"]
    mean = np.asarray(next(line for line in axes.lines if line.get_label() == "mean of 2 seeds").get_ydata())
    assert (mean[0], mean[-1]) == (2.0, 3.0)


def test_a_folder_without_curves_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        plot.main([str(tmp_path)])
    assert exit_.value.code == 2
    assert capsys.readouterr().err == f"There are no learning curves in {tmp_path}: examples/train.py writes them.\n"
