"""The trainer as the process that a job starts."""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from examples.plot import final_returns
from examples.train import Agent

CHECKOUT = Path(__file__).parents[2]
TRAIN = [sys.executable, str(CHECKOUT / "examples" / "train.py")]
SEEDS = range(1, 6)


def environment(**changes: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WANDB_")}
    return {**kept, **changes}


def untrained_return(env_id: str) -> float:
    """The mean return of the first policy, before any update."""
    agent = Agent(env_id, 1)
    agent.act(2_000)
    return sum(episode_return for _, episode_return in agent.curve) / len(agent.curve)


@pytest.mark.parametrize("env_id", ["CartPole-v1", "Acrobot-v1"])
def test_each_of_five_seeds_learns_what_the_trainer_promises(env_id: str, tmp_path: Path) -> None:
    def run(seed: int) -> str:
        command = [*TRAIN, "--env-id", env_id, "--seed", str(seed), "--output", str(tmp_path)]
        return subprocess.run(command, check=True, capture_output=True, text=True, env=environment()).stdout

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        outputs = list(pool.map(run, SEEDS))
    returns = final_returns(tmp_path)[env_id]
    untrained = untrained_return(env_id)
    threshold = 3 * untrained if env_id == "CartPole-v1" else untrained + 300
    assert list(returns) == list(SEEDS)
    assert min(returns.values()) > threshold, (returns, untrained)
    assert [output.splitlines()[-1] for output in outputs] == [
        f"final: env={env_id} seed={seed} return={returns[seed]:.2f}" for seed in SEEDS
    ]


def test_progress_is_in_the_log_while_the_run_goes_on(tmp_path: Path) -> None:
    """The run is far too long to end by itself here; without flushing, its first line would wait for a full buffer."""
    command = [*TRAIN, "--total-timesteps", "100000000", "--output", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment()) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            assert process.poll() is None
        finally:
            process.kill()
    assert re.match(r"step=\d+ episodes=\d+ return=", line)
    assert list(tmp_path.glob("*.csv")) == []


def test_wandb_is_imported_for_track_only(tmp_path: Path) -> None:
    program = (
        "import sys; from examples.train import main; "
        f"main(['--total-timesteps', '8', '--output', {str(tmp_path)!r}]); sys.exit('wandb' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, cwd=CHECKOUT, env=environment())


def test_track_logs_to_the_run_that_the_environment_names(tmp_path: Path) -> None:
    changes = {"WANDB_MODE": "offline", "WANDB_RUN_ID": "abcd1234-7", "WANDB_RESUME": "allow", "HOME": str(tmp_path)}
    command = [*TRAIN, "--track", "--total-timesteps", "1000", "--output", "curves"]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, cwd=tmp_path, env=environment(**changes), timeout=120
    )
    (folder,) = (tmp_path / "wandb").glob("offline-run-*-abcd1234-7")
    assert (folder / "run-abcd1234-7.wandb").stat().st_size > 0
    assert re.search(r"wandb:\s+episode_return \d", done.stderr)
    assert done.stdout.splitlines()[-1].startswith("final: ")


def test_track_without_a_key_is_one_sentence_and_no_training(tmp_path: Path) -> None:
    command = [*TRAIN, "--track", "--output", "curves"]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, cwd=tmp_path, env=environment(HOME=str(tmp_path))
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "--track: No API key configured" in done.stderr
    assert done.stdout == ""
