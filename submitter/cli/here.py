"""`submitter run` without AWS: the docker lines of a dry run, and runs in this machine's Docker."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from submitter import render
from submitter.asked import WhatOptions, asked
from submitter.capacity import check_memory
from submitter.cli.outfit import Extras
from submitter.cli.output import note
from submitter.containers import ALL_GPUS, ContainerPlan, dry_run_lines, places
from submitter.errors import ConfigurationError, RunsFailedError, UsageError
from submitter.hidden import readable
from submitter.hints import hints
from submitter.names import check_sweep_name, new_nonce, sweep_name
from submitter.plan import timeout_seconds
from submitter.provenance import current_commit
from submitter.request import DEFAULT_IMAGE
from submitter.secrets import Secrets
from submitter.selection import label
from submitter.tracking import API_KEY
from submitter.variables import parse_variables

if TYPE_CHECKING:
    from submitter.local import Finished

_SCRIPT_HEAD: Final = (
    "#!/bin/sh",
    "# Made by `submitter run`: a container for each run. Values that are not here, such as WANDB_API_KEY's, are taken",
    "# from the environment of whoever starts it.",
)


def dry_run(given: Mapping[str, Any], extras: Extras, *, write: bool, as_json: bool) -> None:
    """Print a docker line for each run; nothing is run.

    With `write` they are written into `<exp-script>.docker.sh`, and the image is built first where that is asked for.
    """
    plan, gpus = _plan(given, extras, Secrets({}))
    _check_hidden(given, plan, extras.secrets_here(given["command"]))
    where = places(_cores(), plan.vcpus, gpus)
    if write:
        extras.build_image(plan.image)
    lines = dry_run_lines(plan, where)
    script = f"{extras.exp_script}.docker.sh" if write else None
    if script:
        _write_script(script, lines)
    if as_json:
        click.echo(render.document("docker-lines", {"script": script, "commands": lines}))
    else:
        click.echo("\n".join(lines))
    found = f" The lines are in {script};" if script else ""
    note(f"Nothing was run.{found} --queue NAME submits the runs, --provider local runs them here.")


def _write_script(name: str, lines: Sequence[str]) -> None:
    """Write the lines into a program of this name."""
    script = Path(name)
    try:
        script.write_text("\n".join([*_SCRIPT_HEAD, *lines, ""]))
        script.chmod(0o755)
    except OSError as error:
        raise UsageError(f"Cannot write {name}: {error.strerror}.", "Give another --exp-script.") from error


def run_local(given: Mapping[str, Any], extras: Extras, *, as_json: bool) -> None:
    """Run the containers in this machine's Docker, and wait for them.

    Raises:
        RunsFailedError: Not all of them succeeded.
    """
    secrets = extras.secrets(given["command"], parse_variables(given["env"]))
    plan, gpus = _plan(given, extras, secrets)
    _check_hidden(given, plan, secrets)

    from submitter.engine import connect  # noqa: PLC0415 - imports docker
    from submitter.local import LocalRuns, ensure_image  # noqa: PLC0415 - as above

    engine = connect(dict(os.environ))
    where = places(engine.cores, plan.vcpus, gpus)
    if plan.memory_mib is None:
        plan = replace(plan, memory_mib=engine.memory_mib * plan.vcpus // engine.cores)
    extras.build_image(plan.image)
    ensure_image(engine, plan.image, note)
    logs = extras.log_dir or Path("local-runs") / f"{plan.name}-{plan.nonce}"
    count = len(plan.asked.runs)
    done = 0

    def tell(ended: "Finished") -> None:
        nonlocal done
        done += 1
        how = ended.reason or "succeeded"
        note(f"[{done}/{count}] {label(ended.run, plan.asked.axes)}: {how} after {render.duration(ended.seconds)}")

    note(
        f"{plan.name}: {render.count(count, 'run')} in {plan.image}, {min(len(where), count)} at once; logs in {logs}."
    )
    ended = LocalRuns(plan, engine, where, secrets=secrets, logs=logs, ended=tell, say=note).run()
    failed = [one for one in ended if one.reason]
    if as_json:
        click.echo(render.document("local-run", _values(plan, ended)))
    else:
        click.echo(f"{plan.name}: {len(ended) - len(failed)} succeeded, {len(failed)} failed.")
    if failed:
        raise RunsFailedError(f"Not all runs of {plan.name} succeeded.", f"Their logs are in {logs}.")


def _values(plan: ContainerPlan, ended: "Sequence[Finished]") -> dict[str, Any]:
    runs = [
        {
            "number": one.run.number,
            "seed": one.run.seed,
            "params": dict(zip(plan.asked.axes, one.run.row, strict=True)),
            "exit_code": one.exit_code,
            "reason": one.reason,
            "seconds": round(one.seconds, 3),
            "log": str(one.log),
        }
        for one in sorted(ended, key=lambda one: one.run.number)
    ]
    return {"name": plan.name, "nonce": plan.nonce, "runs": runs}


def _plan(given: Mapping[str, Any], extras: Extras, secrets: Secrets) -> tuple[ContainerPlan, str | None]:
    """Check the options and return what is to be run, and the GPUs to run it on."""
    what = asked(WhatOptions(**{f.name: given[f.name] for f in fields(WhatOptions) if f.name in given}))
    for remark in (*what.repeated, *hints(given["command"], what.axes)):
        note(remark)
    if given["num_memory"] is not None:
        check_memory(given["num_memory"])
    if not extras.exp_script:
        raise UsageError("--exp-script names no file.", "Write it like --exp-script debug.sh.")
    image = given["image"] or DEFAULT_IMAGE
    extras.check_build(image)
    name = sweep_name(given["command"], image) if given["name"] is None else check_sweep_name(given["name"])
    more = extras.variables(given["command"], name, current_commit(), secrets)
    plan = ContainerPlan(
        name=name,
        nonce=new_nonce(),
        asked=what,
        image=image,
        environment={**more, **parse_variables(given["env"])},
        secrets=tuple(dict.fromkeys((API_KEY, *extras.secret))),
        vcpus=given["num_vcpu"],
        memory_mib=given["num_memory"],
        timeout_seconds=timeout_seconds(given["num_hours"]),
    )
    return plan, extras.gpus or (ALL_GPUS if given["num_gpu"] else None)


def _check_hidden(given: Mapping[str, Any], plan: ContainerPlan, secrets: Secrets) -> None:
    """Check that no secret's value would be in a script, the name of a container, or a variable that is none.

    Raises:
        UsageError: One would be.
    """
    secrets.check_hidden(readable(given, plan.environment, runs=plan.asked.runs))


def _cores() -> int:
    """Return how many cores Docker has; without a daemon, this machine's, and say so."""
    from submitter.engine import connect  # noqa: PLC0415 - imports docker

    try:
        return connect(dict(os.environ)).cores
    except ConfigurationError as error:
        cores = os.cpu_count() or 1
        note(f"{error.message} The lines are for the {cores} cores of this machine.")
        return cores
