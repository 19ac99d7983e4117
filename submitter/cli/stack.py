"""Commands about the stack: queues."""

from typing import TYPE_CHECKING, Any

import click

from submitter import capacity, render
from submitter.cli import options
from submitter.stack import StackSource

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infra.outputs import Queue


@click.command("queues")
@options.as_json
@click.pass_obj
def queues_command(source: StackSource, *, as_json: bool) -> None:
    """List the stack's queues: their hardware, how they stand, and what fits on them by default.

    "fit one" is how many runs one instance holds, "at once" how many the queue does, "waiting" how many wait for an
    instance.
    """
    connection = options.connect(source)
    contract = connection.contract
    live = connection.batch.queues(contract.queue_names)
    waiting = connection.batch.waiting([name for name in contract.queue_names if name in live])
    order = {name: queue["computeEnvironmentOrder"][0]["computeEnvironment"] for name, queue in live.items()}
    on = {each["computeEnvironmentArn"]: each for each in connection.batch.environments(list(order.values()))}
    rows = [
        _values(contract.queues[name], live.get(name, {}), on.get(order.get(name, ""), {}), waiting.get(name))
        for name in contract.queue_names
    ]
    if as_json:
        click.echo(render.document("queues", {"queues": rows}))
        return
    header = ("queue", "purchase", "type", "vCPU", "MiB", "GPU", "arch", "state", "fit one", "at once", "waiting")
    click.echo(render.table(header, [_row(values) for values in rows]))


def _values(
    queue: "Queue", live: "Mapping[str, Any]", environment: "Mapping[str, Any]", waiting: int | None
) -> dict[str, Any]:
    gpus = capacity.default_gpus(queue)
    run = {"vcpus": 1, "memory_mib": capacity.default_memory_mib(queue, 1, gpus), "gpus": gpus}
    return {
        **vars(queue),
        "usable_memory_mib": capacity.usable_memory_mib(queue.memory_mib),
        "state": live.get("state", "gone").lower(),
        "status": live.get("status", "gone").lower(),
        "environment_state": environment.get("state", "gone").lower(),
        "environment_status": environment.get("status", "gone").lower(),
        "default_run": run,
        "runs_per_instance": capacity.runs_per_instance(queue, **run),
        "runs_at_once": capacity.runs_at_once(queue, **run),
        "waiting": waiting,
    }


def _row(values: "Mapping[str, Any]") -> tuple[object, ...]:
    gpu = f"{values['gpus']} {values['gpu_model']}" if values["gpus"] else None
    return (
        values["name"],
        values["purchase"],
        values["instance_type"],
        values["vcpus"],
        values["memory_mib"],
        gpu,
        values["architecture"],
        _standing(values),
        values["runs_per_instance"],
        values["runs_at_once"],
        values["waiting"],
    )


def _standing(values: "Mapping[str, Any]") -> str:
    """Say whether the queue takes runs, and its environment starts them."""
    said = [values["state"]]
    if said == ["gone"]:
        return "gone"
    if values["status"] != "valid":
        said.append(values["status"])
    said += [
        f"environment {word}"
        for word in dict.fromkeys((values["environment_state"], values["environment_status"]))
        if word not in {"enabled", "valid"}
    ]
    return ", ".join(said)
