"""How measurements are compared."""

from benchmarks.measure import Result


def test_a_ratio_is_of_medians_so_that_one_slow_run_does_not_count() -> None:
    result = Result("run", ours=(1.0, 9.0, 1.2), floor=(0.8, 0.7, 0.8), calls={"sts": 1, "batch": 3})
    assert result.ratio == 1.2 / 0.8
    assert result.row() == "| run | 1.20 s | 0.80 s | 1.50 | 1.5 | batch 3, sts 1 |"
