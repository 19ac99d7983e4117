"""The trainer's mathematics, its curve, and its refusals."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from examples import train

Array = NDArray[np.float64]


def slope(loss: Callable[[], float], at: Array) -> Array:
    """The gradient of a loss by central differences."""
    gradient = np.zeros_like(at)
    for index in np.ndindex(at.shape):
        there = at[index]
        at[index] = there + 1e-6
        above = loss()
        at[index] = there - 1e-6
        gradient[index] = (above - loss()) / 2e-6
        at[index] = there
    return gradient


def test_the_gradient_of_a_network_is_the_slope_of_its_loss() -> None:
    rng = np.random.default_rng(0)
    network = train.Network(3, 2, 1.0, rng)
    inputs, targets = rng.standard_normal((5, 3)), rng.standard_normal((5, 2))

    def loss() -> float:
        return float(((network.layers(inputs)[-1] - targets) ** 2).sum() / 2)

    layers = network.layers(inputs)
    gradient = network.gradient(layers, layers[-1] - targets)
    for parameter, computed in zip(network.parameters, gradient, strict=True):
        np.testing.assert_allclose(computed, slope(loss, parameter), atol=1e-6)


def test_the_gradient_for_the_policy_is_the_slope_of_the_clipped_loss() -> None:
    """Among the samples are both signs of the advantage, and ratios within the clipping range, below and above it."""
    rng = np.random.default_rng(1)
    logits, actions, advantage = rng.standard_normal((40, 3)), rng.integers(0, 3, 40), rng.standard_normal(40)
    rows = np.arange(40)
    old = train.log_softmax(logits)[rows, actions] + rng.uniform(-0.6, 0.6, 40)

    def loss() -> float:
        log_probs = train.log_softmax(logits)
        ratio = np.exp(log_probs[rows, actions] - old)
        gain = np.minimum(advantage * ratio, advantage * np.clip(ratio, 1 - train.CLIP, 1 + train.CLIP))
        entropy = -(np.exp(log_probs) * log_probs).sum(axis=1)
        return float(-(gain + train.ENTROPY_COEFFICIENT * entropy).mean())

    np.testing.assert_allclose(train.policy_delta(logits, actions, old, advantage), slope(loss, logits), atol=1e-7)


def test_an_advantage_is_the_discounted_sum_of_surprises_up_to_the_episodes_end() -> None:
    rng = np.random.default_rng(2)
    rewards, values, after = rng.standard_normal((6, 1)), rng.standard_normal((6, 1)), rng.standard_normal(1)
    ended = np.array([[False], [False], [True], [False], [False], [False]])
    following = np.concatenate([values[1:], after[None]]) * ~ended
    surprise = rewards + train.GAMMA * following - values
    decay = train.GAMMA * train.GAE_LAMBDA
    expected = [sum(decay ** (t - s) * surprise[t] for t in range(s, 3 if s < 3 else 6)) for s in range(6)]
    np.testing.assert_allclose(train.advantages(rewards, values, after, ended), np.array(expected))


def test_a_seed_gives_the_same_bytes_and_another_seed_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    curves, last_lines = [], []
    for folder, seed in (("a", "7"), ("b", "7"), ("c", "8")):
        train.main(["--seed", seed, "--total-timesteps", "4000", "--output", str(tmp_path / folder)])
        curves.append((tmp_path / folder / f"CartPole-v1-seed{seed}.csv").read_bytes())
        last_lines.append(capsys.readouterr().out.splitlines()[-1])
    assert curves[0] == curves[1] != curves[2]
    assert last_lines[0] == last_lines[1]
    assert last_lines[0].startswith("final: env=CartPole-v1 seed=7 return=")


def test_a_curve_has_the_steps_and_returns_of_the_episodes(tmp_path: Path) -> None:
    """Every step on CartPole earns 1, so that the ended episodes are as long as their returns say."""
    agent = train.Agent("CartPole-v1", 3)
    ended = [episode for episodes in agent.train(2_000) for episode in episodes]
    assert ended == agent.curve
    assert agent.steps == 2_000
    assert sum(episode_return for _, episode_return in ended) + agent.returns.sum() == 2_000
    train.write_curve(tmp_path / "curve.csv", agent.curve)
    rows = [line.split(",") for line in (tmp_path / "curve.csv").read_text().splitlines()]
    assert rows[0] == ["step", "episode_return"]
    assert [(int(step), float(episode_return)) for step, episode_return in rows[1:]] == ended
    assert [path.name for path in tmp_path.iterdir()] == ["curve.csv"]


def test_a_curve_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "curve.csv"
    train.write_curve(path, [(8, 1.0)])
    before = path.read_bytes()
    with pytest.raises(TypeError):
        train.write_curve(path, [(8, 1.0), None])  # type: ignore[list-item]  # breaks off in the middle
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--env-id", "CartPol-v1"], "CartPol"),
        (["--env-id", "nomodule:CartPole-v1"], "nomodule"),
        (["--env-id", "Pendulum-v1"], "not discrete"),
        (["--total-timesteps", "-5"], "--total-timesteps at least 1"),
        (["--total-timesteps", "0"], "--total-timesteps at least 1"),
        (["--seed", "-1"], "--seed must be at least 0"),
    ],
)
def test_bad_input_is_one_sentence_and_no_folder(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        train.main([*arguments, "--output", str(tmp_path / "runs")])
    message = capsys.readouterr().err
    assert exit_.value.code == 2
    assert said in message
    assert message.count("\n") == 1
    assert not (tmp_path / "runs").exists()


def test_an_output_that_is_a_file_is_refused_before_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "runs").write_text("")
    with pytest.raises(SystemExit) as exit_:
        train.main(["--output", str(tmp_path / "runs")])
    printed = capsys.readouterr()
    assert exit_.value.code == 2
    assert printed.err == f"The folder {tmp_path / 'runs'} cannot be made: File exists.\n"
    assert printed.out == ""


def test_a_run_that_broke_off_goes_on_from_its_checkpoint_to_the_same_bytes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(folder: str, *arguments: str) -> None:
        train.main(["--total-timesteps", "6000", "--output", str(tmp_path / folder), *arguments])

    class HostGoneError(BaseException):
        pass

    def gone(self: train.File, state: bytes) -> None:
        save(self, state)
        raise HostGoneError

    save = train.File.save
    checkpoint = ("--checkpoint", str(tmp_path / "kept"), "--checkpoint-every", "2000")
    with monkeypatch.context() as patch:
        patch.setattr(train.File, "save", gone)
        with pytest.raises(HostGoneError):
            run("broken", *checkpoint)
    assert not list((tmp_path / "broken").iterdir())
    capsys.readouterr()
    run("broken", *checkpoint)
    assert capsys.readouterr().out.startswith("resumed: step=2048\n")
    run("whole")
    curves = [(tmp_path / folder / "CartPole-v1-seed1.csv").read_bytes() for folder in ("broken", "whole")]
    assert curves[0] == curves[1]
