"""The options of `run`, in groups: what runs, what it is called, and what each run gets."""

from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any, Final

import click

from submitter.cli.options import Line
from submitter.errors import UsageError
from submitter.images import DEFAULT_ARCHS, check_reference
from submitter.params import Params, parse_params

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def _group(*options: Decorator) -> Decorator:
    """Return the options as one decorator; help shows them in this order."""
    return lambda function: reduce(lambda decorated, option: option(decorated), reversed(options), function)


def checked_image(_context: click.Context, _option: click.Parameter, image: str | None) -> str | None:
    """Return the image that an option names; the option's callback.

    Raises:
        UsageError: It cannot be an image's name.
    """
    return None if image is None else check_reference(image)


def _read_params(_context: click.Context, _option: click.Parameter, file: str | None) -> Params | None:
    if file is None:
        return None
    try:
        with click.open_file(file, "rb") as opened:  # as bytes, or line breaks inside of values would be changed
            return parse_params(opened.read().decode(), "standard input" if file == "-" else file)
    except (OSError, UnicodeDecodeError) as error:
        cause = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise UsageError(f"Cannot read {file}: {cause}.", "Give a CSV file, or JSON objects one a line.") from error


what: Final = _group(
    click.option(
        "--image",
        "--docker-tag",
        "image",
        metavar="IMAGE",
        callback=checked_image,
        help="The container image.  [default: the stack's repository, else vwxyzjn/cleanrl:latest]",
    ),
    click.option(
        "--command",
        default="uv run python cleanrl/ppo.py",
        show_default=True,
        help="What each run executes, for the container's shell. {seed} and {axis} are places for values; what has no "
        "place is added at the end.",
    ),
    click.option("--num-seed", type=int, metavar="N", help="How many seeds.  [default: 1]"),
    click.option("--start-seed", type=int, metavar="SEED", help="The first of them.  [default: 1]"),
    click.option("--seeds", metavar="RANGES", help="The seeds, such as 1-3,7."),
    click.option("--no-seed", is_flag=True, help="The command has no seed: nothing is added, and no W&B id is set."),
    click.option(
        "--num-jobs", type=int, metavar="N", help="With --no-seed: how many equal jobs, such as agents of a W&B sweep."
    ),
    click.option(
        "--grid",
        type=Line(),
        multiple=True,
        metavar="AXIS=VALUES",
        help="A parameter and its values, such as env-id=CartPole-v1,Acrobot-v1; several make every combination.",
    ),
    click.option(
        "--params",
        metavar="FILE",
        callback=_read_params,
        help="A file with a run a line: CSV with a header, or JSON objects (.jsonl); - is standard input. A column "
        "`seed` is the run's seed.",
    ),
    click.option(
        "--arg-style",
        type=click.Choice(["flag", "equals", "hydra"]),
        default="flag",
        show_default=True,
        help="How values are added: --axis VALUE, --axis=VALUE or axis=VALUE.",
    ),
    click.option("--seed-flag", default="--seed", show_default=True, metavar="FLAG", help="The command's seed option."),
)
"""Which runs there are."""

identity: Final = _group(
    click.option("--name", help="The sweep's name.  [default: the script's and a hash of command and image]"),
    click.option("--owner", metavar="OWNER", help="Whose sweep it is.  [default: the AWS caller's name]"),
    click.option(
        "--like",
        metavar="OTHER",
        help="Take the runs and options of this sweep, but for those that are given here; they count before "
        "environment variables.",
    ),
)
"""Which sweep the runs belong to."""

each_run: Final = _group(
    click.option("--num-vcpu", type=int, default=1, show_default=True, metavar="N", help="vCPUs of a run."),
    click.option("--num-memory", type=int, metavar="MIB", help="Memory of a run.  [default: its share of an instance]"),
    click.option("--num-gpu", type=int, metavar="N", help="GPUs of a run.  [default: 1 where the instances have any]"),
    click.option(
        "--num-hours", type=float, default=16, show_default=True, metavar="HOURS", help="Time limit of an attempt."
    ),
    click.option(
        "--attempts",
        "--aws-num-retries",
        "attempts",
        type=int,
        metavar="N",
        help="Starts of a run at most.  [default: 6 on Spot, else 2]",
    ),
    click.option("--retry-on-error", is_flag=True, help="Start a run again whose program failed, not only a lost one."),
    click.option(
        "--wandb-retry",
        type=click.Choice(["resume", "new"]),
        default="resume",
        show_default=True,
        help="Whether later attempts go on with the run's W&B id or, for programs that do not resume, each have a new "
        "one.",
    ),
    click.option("--env", type=Line(), multiple=True, metavar="NAME=VALUE", help="A variable of each run; no secrets."),
    click.option("--tag", type=Line(), multiple=True, metavar="NAME=VALUE", help="A tag of the jobs on AWS."),
)
"""What each run gets, and how often it is started."""

archs: Final = click.option(
    "--archs",
    default=DEFAULT_ARCHS,
    show_default=True,
    metavar="PLATFORMS",
    help="Platforms to build for, such as linux/arm64,linux/amd64; several only with --push.",
)

build_arg: Final = click.option(
    "--build-arg",
    type=Line(),
    multiple=True,
    metavar="NAME=VALUE",
    help="A value for the Dockerfile's ARG of that name, such as BASE_IMAGE=ubuntu:24.04.",
)

image: Final = _group(
    click.option("-b", "--build", is_flag=True, help="Build the image first, from the Dockerfile in this folder."),
    click.option("-p", "--push", is_flag=True, help="With --build: push it, instead of keeping it in this Docker."),
    archs,
    build_arg,
    click.option(
        "--pin/--no-pin",
        default=True,
        show_default=True,
        help="Keep to the image that the tag means now: a tag that moves does not change a sweep that was begun.",
    ),
    click.option("--keep-image", is_flag=True, help="Go on with the image that the sweep was begun with."),
)
"""How the image comes about, and that it stays the same."""

keys: Final = _group(
    click.option(
        "--wandb-key",
        metavar="KEY",
        help="The W&B key, which other users of this machine can see in a command line.  [default: WANDB_API_KEY, else "
        "what `wandb login` has kept]",
    ),
    click.option(
        "--secret",
        multiple=True,
        metavar="NAME",
        help="A variable of this shell, such as HF_TOKEN, whose value jobs get and nobody can see.",
    ),
    click.option("--auto-tag", is_flag=True, help="Tag the runs in W&B with `git describe --tags`, as CleanRL does."),
)
"""Values that only jobs may see, and tags in W&B."""

place: Final = _group(
    click.option(
        "--provider",
        type=click.Choice(["aws", "local"]),
        help="Where to run; local is this machine's Docker.  [default: aws with --queue or --like, else nowhere: a dry "
        "run]",
    ),
    click.option("--job-queue", metavar="NAME", help="CleanRL's --queue, which submits only with --provider aws."),
    click.option(
        "--exp-script",
        default="debug.sh",
        show_default=True,
        metavar="FILE",
        help="Without a queue: the docker lines are written into FILE.docker.sh.",
    ),
    click.option("--gpus", metavar="IDS", help="Without a queue: GPUs to use, such as 0,1, one for each run; or all."),
    click.option(
        "--log-dir",
        type=click.Path(path_type=Path, file_okay=False),
        metavar="FOLDER",
        help="With --provider local: where logs go.  [default: a new folder in local-runs]",
    ),
)
"""Where the runs run."""
