"""Train a small agent by PPO, with numpy only: one seeded run, one learning curve.

    python examples/train.py --env-id CartPole-v1 --seed 1
    python examples/plot.py

Proximal policy optimisation as CleanRL's ppo.py does it (https://docs.cleanrl.dev/rl-algorithms/ppo/), with the
gradients written out. It learns environments with flat observations and discrete actions. At the default length a run
takes two to four seconds on one core, and for each of the seeds 1 to 5 the mean return of its last 20 episodes is

* on CartPole-v1 over 3 times an untrained policy's (about 22; 500 is the most there is);
* on Acrobot-v1 over 300 above an untrained policy's (about -500, the least there is; -100 counts as solved).

The same seed and options give the same curve, byte for byte, on the same machine; another seed gives another.

The curve, `<output>/<env-id>-seed<seed>.csv`, is written when the run is complete. On AWS Batch a job's folder goes
with the job: there the progress lines in its log tell the curve, or W&B with --track. The environment names W&B's
project and run (WANDB_PROJECT, WANDB_RUN_ID, WANDB_RESUME); WANDB_MODE=offline needs no account.

With --checkpoint, or on AWS Batch with a bucket for artifacts, a run that is started again goes on from its newest
checkpoint, and the curve is still the same bytes. A Spot instance goes without a word to the program, so checkpoints
are written every so many steps, and not at the end.
"""

import argparse
import os
import pickle
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Curve = list[tuple[int, float]]  # steps of all environments so far, and the return of the episode that ended there

NUM_ENVS = 8  # environments that are stepped together
NUM_STEPS = 64  # steps of each environment between two updates
HIDDEN, BATCH = 64, 64  # units of a layer, steps of a minibatch: so small that BLAS keeps to one thread
LEARNING_RATE = 1.5e-3  # at the start; falls to 0 along a straight line
GAMMA, GAE_LAMBDA = 0.99, 0.95
EPOCHS = 4
CLIP, ENTROPY_COEFFICIENT, MAX_GRADIENT_NORM = 0.2, 0.02, 0.5
LAST_EPISODES = 20  # a printed return is the mean of so many episodes
REPORTS = 20  # lines of progress in a run, about


class Network:
    """A perceptron with two tanh layers, and Adam to train it."""

    def __init__(self, inputs: int, outputs: int, output_scale: float, rng: np.random.Generator) -> None:
        shapes = ((inputs, HIDDEN), (HIDDEN, HIDDEN), (HIDDEN, outputs))
        self.weights = [rng.standard_normal(shape) / shape[0] ** 0.5 for shape in shapes]
        self.weights[-1] *= output_scale
        self.biases = [np.zeros(columns) for _, columns in shapes]
        self.parameters = [*self.weights, *self.biases]
        self.means = [np.zeros_like(parameter) for parameter in self.parameters]
        self.squares = [np.zeros_like(parameter) for parameter in self.parameters]
        self.updates = 0

    def layers(self, inputs: Array) -> list[Array]:
        """Return the values of every layer, the inputs first and the outputs last."""
        first = np.tanh(inputs @ self.weights[0] + self.biases[0])
        second = np.tanh(first @ self.weights[1] + self.biases[1])
        return [inputs, first, second, second @ self.weights[2] + self.biases[2]]

    def gradient(self, layers: list[Array], delta: Array) -> list[Array]:
        """Return the gradient of a loss for each parameter, given `delta`, its gradient for the outputs."""
        deltas = [delta]
        for weight, values in zip(self.weights[:0:-1], layers[-2:0:-1], strict=True):
            deltas.insert(0, (deltas[0] @ weight.T) * (1 - values**2))
        weights = [values.T @ slope for values, slope in zip(layers[:-1], deltas, strict=True)]
        return [*weights, *(slope.sum(axis=0) for slope in deltas)]

    def descend(self, gradient: list[Array], learning_rate: float) -> None:
        """Take one step of Adam against the gradient, which is first clipped by its norm."""
        norm = sum(float((slope**2).sum()) for slope in gradient) ** 0.5
        scale = min(1.0, MAX_GRADIENT_NORM / (norm + 1e-6))
        self.updates += 1
        rate = learning_rate * (1 - 0.999**self.updates) ** 0.5 / (1 - 0.9**self.updates)
        for i, slope in enumerate(gradient):
            self.means[i] += 0.1 * (scale * slope - self.means[i])
            self.squares[i] += 0.001 * ((scale * slope) ** 2 - self.squares[i])
            self.parameters[i] -= rate * self.means[i] / (np.sqrt(self.squares[i]) + 1e-5)


def log_softmax(logits: Array) -> Array:
    """Return the logarithms of the actions' probabilities."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))


def advantages(rewards: Array, values: Array, next_values: Array, ended: Array) -> Array:
    """Return the generalised advantage estimates, one row a step; `next_values` are those after the last one."""
    result = np.zeros_like(rewards)
    advantage = np.zeros_like(next_values)
    for t in reversed(range(len(rewards))):
        advantage = rewards[t] - values[t] + GAMMA * (next_values + GAE_LAMBDA * advantage) * ~ended[t]
        result[t], next_values = advantage, values[t]
    return result


def policy_delta(logits: Array, actions: Array, old_log_probs: Array, advantage: Array) -> Array:
    """Return the gradient of PPO's clipped loss, less the entropy bonus, for the logits."""
    log_probs = log_softmax(logits)
    probs = np.exp(log_probs)
    ratio = np.exp(log_probs[np.arange(len(actions)), actions] - old_log_probs)
    # Where clipping makes the loss larger, the loss is flat.
    flat = advantage * np.clip(ratio, 1 - CLIP, 1 + CLIP) < advantage * ratio
    towards_action = np.eye(logits.shape[1])[actions] - probs
    towards_entropy = -probs * (log_probs - (probs * log_probs).sum(axis=1, keepdims=True))
    slope = np.where(flat, 0.0, -advantage * ratio)[:, None]
    return np.asarray((slope * towards_action - ENTROPY_COEFFICIENT * towards_entropy) / len(actions))


class Agent:
    """An actor and a critic in environments of theirs; raises gymnasium.error.Error or ImportError without such."""

    def __init__(self, env_id: str, seed: int) -> None:
        env_seeds, own_seed = np.random.SeedSequence(seed).spawn(2)
        self.rng = np.random.default_rng(own_seed)
        makers = [partial(gym.make, env_id)] * NUM_ENVS
        self.envs = gym.vector.SyncVectorEnv(makers, autoreset_mode=gym.vector.AutoresetMode.SAME_STEP)
        seen, choices = self.envs.single_observation_space, self.envs.single_action_space
        if not (isinstance(seen, gym.spaces.Box) and len(seen.shape) == 1 and isinstance(choices, gym.spaces.Discrete)):
            raise gym.error.Error("its observations are not flat or its actions not discrete.")
        self.observation = self.envs.reset(seed=[int(word) for word in env_seeds.generate_state(NUM_ENVS)])[0]
        self.actor = Network(seen.shape[0], int(choices.n), 0.01, self.rng)
        self.critic = Network(seen.shape[0], 1, 1.0, self.rng)
        self.returns = np.zeros(NUM_ENVS)  # of the episodes under way
        self.steps = 0  # of all environments together
        self.curve: Curve = []

    def values(self, observations: Array) -> Array:
        """Return the returns that the critic expects from here on."""
        return self.critic.layers(observations.astype(np.float64))[-1][..., 0]

    def act(self, steps: int) -> tuple[Array, Array, Array, Array, Array, Array]:
        """Step every environment `steps` times; return what was met and done, one row a step."""
        observations = np.zeros((steps, *self.observation.shape))
        log_probs, values, rewards = np.zeros((3, steps, NUM_ENVS))
        actions, ended = np.zeros((steps, NUM_ENVS), int), np.zeros((steps, NUM_ENVS), bool)
        for t in range(steps):
            observations[t] = self.observation
            values[t] = self.values(observations[t])
            choices = log_softmax(self.actor.layers(observations[t])[-1])
            actions[t] = (choices + self.rng.gumbel(size=choices.shape)).argmax(axis=1)  # a sample of the policy
            log_probs[t] = choices[np.arange(NUM_ENVS), actions[t]]
            self.observation, rewards[t], terminated, truncated, info = self.envs.step(actions[t])
            ended[t] = terminated | truncated
            self.steps += NUM_ENVS
            self.returns += rewards[t]
            self.curve += [(self.steps, float(episode_return)) for episode_return in self.returns[ended[t]]]
            self.returns[ended[t]] = 0.0
            # An episode that was only cut off would have gone on to earn what the critic expects.
            for i in np.flatnonzero(truncated & ~terminated):
                rewards[t, i] += GAMMA * self.values(info["final_obs"][i])
        return observations, actions, log_probs, values, rewards, ended

    def update(self, steps: int, learning_rate: float) -> None:
        """Act, then train both networks on what happened: some epochs in shuffled minibatches."""
        observations, actions, log_probs, values, rewards, ended = self.act(steps)
        advantage = advantages(rewards, values, self.values(self.observation), ended)
        returns = (advantage + values).ravel()
        observations = observations.reshape(returns.size, -1)
        for _ in range(EPOCHS):
            for batch in np.array_split(self.rng.permutation(returns.size), -(-returns.size // BATCH)):
                gain = advantage.ravel()[batch]
                gain = (gain - gain.mean()) / (gain.std() + 1e-8)
                layers = self.actor.layers(observations[batch])
                delta = policy_delta(layers[-1], actions.ravel()[batch], log_probs.ravel()[batch], gain)
                self.actor.descend(self.actor.gradient(layers, delta), learning_rate)
                layers = self.critic.layers(observations[batch])
                delta = (layers[-1] - returns[batch, None]) / len(batch)
                self.critic.descend(self.critic.gradient(layers, delta), learning_rate)

    def train(self, total_timesteps: int) -> Iterator[Curve]:
        """Train for so many steps, rounded up to a multiple of NUM_ENVS; yield each update's ended episodes."""
        while (remaining := total_timesteps - self.steps) > 0:
            known = len(self.curve)
            self.update(min(NUM_STEPS, -(-remaining // NUM_ENVS)), LEARNING_RATE * remaining / total_timesteps)
            yield self.curve[known:]

    def last_return(self) -> float:
        """Return the mean return of the last episodes, which is not a number before one has ended."""
        last = [episode_return for _, episode_return in self.curve[-LAST_EPISODES:]]
        return sum(last) / len(last) if last else float("nan")


def write_curve(path: Path, curve: Curve) -> None:
    """Write the curve as CSV, whole or not at all."""
    rows = "".join(f"{step},{episode_return}\n" for step, episode_return in curve)
    replace_file(path, f"step,episode_return\n{rows}".encode())


def replace_file(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    unfinished.write_bytes(content)
    unfinished.replace(path)


class File:
    """A checkpoint in a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)

    def save(self, state: bytes) -> None:
        """Keep this state in place of the last one."""
        replace_file(self.path, state)

    def load(self) -> bytes | None:
        """Return the state that was kept last, if any was."""
        return self.path.read_bytes() if self.path.exists() else None


class Object:
    """A checkpoint in an S3 bucket, `s3://bucket/key`: other programs never see half of one."""

    def __init__(self, url: str) -> None:
        import boto3  # noqa: PLC0415 - slow to import, and only a bucket needs it

        self.client = boto3.client("s3")
        self.bucket, _, self.key = url.removeprefix("s3://").partition("/")

    def save(self, state: bytes) -> None:
        """Keep this state in place of the last one."""
        self.client.put_object(Bucket=self.bucket, Key=self.key, Body=state)

    def load(self) -> bytes | None:
        """Return the state that was kept last, if any was."""
        try:
            return self.client.get_object(Bucket=self.bucket, Key=self.key)["Body"].read()
        except self.client.exceptions.NoSuchKey:
            return None
        except self.client.exceptions.ClientError as error:
            raise SystemExit(f"--checkpoint: {error}") from None


def open_checkpoint(place: str | None, name: str) -> File | Object | None:
    """Return where the state of a run is kept; None when it is not."""
    if place is None:
        return None
    return Object(f"{place.rstrip('/')}/{name}") if place.startswith("s3://") else File(Path(place) / name)


def start_agent(env_id: str, seed: int, checkpoint: File | Object | None) -> Agent:
    """Return the agent of the newest checkpoint, or a new one."""
    if checkpoint and (state := checkpoint.load()):
        agent: Agent = pickle.loads(state)  # noqa: S301 - written by this program, in a place of the run's own
        print(f"resumed: step={agent.steps}", flush=True)
        return agent
    return Agent(env_id, seed)


def start_wandb(args: argparse.Namespace) -> Any:
    """Start a W&B run; where the environment says something about it, that holds."""
    import wandb  # noqa: PLC0415 - slow to import, and only --track needs it

    os.environ.setdefault("WANDB_PROJECT", "rl-batch")
    os.environ.setdefault("WANDB_NAME", f"{args.env_id}-seed{args.seed}")
    try:
        run = wandb.init(config={"env_id": args.env_id, "seed": args.seed, "total_timesteps": args.total_timesteps})
    except wandb.Error as error:
        raise SystemExit(f"--track: {error}") from None
    run.define_metric("episode_return", step_metric="step")
    return run


def main(argv: list[str] | None = None) -> None:
    """Train as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env-id", default="CartPole-v1", help="gymnasium environment (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="default: %(default)s")
    parser.add_argument("--total-timesteps", type=int, default=50_000, help="default: %(default)s")
    parser.add_argument("--output", type=Path, default=Path("runs"), help="folder of the curve (default: %(default)s)")
    parser.add_argument(
        "--checkpoint",
        default=os.environ.get("SUBMITTER_ARTIFACTS"),
        metavar="PLACE",
        help="folder or s3://BUCKET/KEY to keep the run's state in (default: what SUBMITTER_ARTIFACTS says)",
    )
    parser.add_argument("--checkpoint-every", type=int, default=10_000, metavar="STEPS", help="default: %(default)s")
    parser.add_argument("--track", action="store_true", help="log to Weights & Biases")
    args = parser.parse_args(argv)
    if args.seed < 0 or args.total_timesteps < 1 or args.checkpoint_every < 1:
        parser.exit(2, "--seed must be at least 0, --checkpoint-every and --total-timesteps at least 1.\n")
    name = f"{args.env_id.replace('/', '-')}-seed{args.seed}"
    try:
        checkpoint = open_checkpoint(args.checkpoint, f"{name}-{args.total_timesteps}.checkpoint")
        agent = start_agent(args.env_id, args.seed, checkpoint)
        args.output.mkdir(parents=True, exist_ok=True)
    except (gym.error.Error, ImportError) as error:
        parser.exit(2, f"There is no environment {args.env_id!r} to train in: {error}\n")
    except OSError as error:
        parser.exit(2, f"The folder {error.filename} cannot be made: {error.strerror}.\n")
    run = start_wandb(args) if args.track else None

    started, began_at, report_at = time.monotonic(), agent.steps, 0.0
    save_at = agent.steps + args.checkpoint_every
    for episodes in agent.train(args.total_timesteps):
        if run is not None:
            for step, episode_return in episodes:
                run.log({"step": step, "episode_return": episode_return})
        if agent.steps >= min(report_at, args.total_timesteps):
            report_at = agent.steps + args.total_timesteps / REPORTS
            progress = f"step={agent.steps} episodes={len(agent.curve)} return={agent.last_return():.2f}"
            speed = (agent.steps - began_at) / (time.monotonic() - started)
            print(f"{progress} steps/s={speed:.0f}", flush=True)
        if checkpoint and agent.steps >= save_at:
            checkpoint.save(pickle.dumps(agent))
            save_at = agent.steps + args.checkpoint_every
    path = args.output / f"{name}.csv"
    write_curve(path, agent.curve)
    if run is not None:
        run.finish()
    print(f"curve: {path}")
    print(f"final: env={args.env_id} seed={args.seed} return={agent.last_return():.2f}", flush=True)


if __name__ == "__main__":
    main()
