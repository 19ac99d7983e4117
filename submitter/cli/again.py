"""`retry` with what it changes: an image that is pinned, keys that are kept again, other limits."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from submitter import images, plan
from submitter.cli.outfit import digest_now
from submitter.cli.output import note
from submitter.errors import ConfigurationError
from submitter.history import Choose, Entry, Generation
from submitter.numbers import NumberSet
from submitter.preflight import check_image
from submitter.registry import LookUp
from submitter.request import find_queue
from submitter.retry import Changes
from submitter.secrets import Secrets, collect
from submitter.selection import Selection
from submitter.tracking import API_KEY, api_key

if TYPE_CHECKING:
    from submitter.cli.connection import Connection
    from submitter.retry import Retried


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Options of `run` that a retry may change, named as there; None is as it was."""

    queue: str | None = None
    image: str | None = None
    num_memory: int | None = None
    num_gpu: int | None = None
    num_hours: float | None = None


def retry(
    connection: "Connection",
    sweep: str,
    choose: Choose,
    limits: Limits,
    *,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> "Retried":
    """Send again what failed or was cancelled of the chosen runs.

    Args:
        connection: The way to the stack.
        sweep: owner/name.
        choose: Says which runs are meant.
        limits: What is to be different from the last time.
        environment: Variables on top of those that the runs had.

    Raises:
        ConfigurationError: There is no such queue, or a key that the runs need is not there.
        UsageError: There is no such sweep, no such run in it, or a change can never work.
        AwsError: AWS refused a job.
    """
    changes, secrets = _changes(connection, sweep, choose, limits)
    return connection.retry(sweep, choose, replace(changes, environment=environment), secrets, say=note)


def _changes(connection: "Connection", sweep: str, choose: Choose, limits: Limits) -> tuple[Changes, Secrets]:
    """Return what is to be different, and the values of secrets that are to be kept again."""
    if limits.image is not None:
        images.check_reference(limits.image)
    _, generation = connection.generation(sweep, None)
    chosen = choose(generation)
    requests = [request for number, request in generation.newest_request().items() if number in chosen]
    if limits.queue and not limits.image:
        queue = find_queue(connection.contract, limits.queue)
        for image in {request.spec.image for request in requests if request.spec}:
            with LookUp(image) as look_up:
                check_image(look_up, queue, say=note)
    asked = Changes(
        queue=limits.queue,
        image=limits.image and _pinned(connection, requests, limits.image, limits.queue),
        memory_mib=limits.num_memory,
        gpus=limits.num_gpu,
        timeout_seconds=None if limits.num_hours is None else plan.timeout_seconds(limits.num_hours),
    )
    secrets = _lost_keys(connection, sweep, choose, generation)
    return replace(asked, secrets=secrets.references(connection.contract.secret_arn)), secrets


def _lost_keys(connection: "Connection", sweep: str, choose: Choose, generation: Generation) -> Secrets:
    """Return the values, from this shell, of the keys that chosen runs need and that are kept no more.

    Raises:
        ConfigurationError: There is no W&B key here.
        UsageError: Another value is not here, or there is no such run.
    """

    def missing(generation: Generation) -> set[str]:
        return connection.missing_keys(generation, choose(generation) - generation.ended("succeeded"))

    # What has succeeded since somebody last looked needs none.
    if not missing(generation) or not (lost := missing(connection.status.read(sweep).generation)):
        return Secrets({})
    command = generation.record.command if generation.record else ""
    key = api_key(None, command, os.environ) if API_KEY in lost else None
    if API_KEY in lost and key is None:
        raise ConfigurationError(
            "The W&B key that the runs were given is kept no more, and there is none here.",
            f"Run `wandb login`, or set {API_KEY}.",
        )
    return collect(sorted(lost - {API_KEY}), os.environ, wandb_key=key)


def _pinned(connection: "Connection", requests: Iterable[Entry], image: str, queue: str | None) -> str:
    """Return the image by what its name means now, having looked whether the queues' instances can run it."""
    names = {queue} if queue else {request.queue for request in requests}
    digests = {digest_now(image, find_queue(connection.contract, name)) for name in names}
    return images.pinned(image, next(iter(digests), None))


def choose_by(selection: Selection) -> Choose:
    """Return what chooses runs by their parameters: which of them have failed, `retry` finds out itself."""
    known = replace(selection, failed=False)
    return lambda generation: NumberSet(run.number for run in known.choose(generation.runs(), generation.axes))
