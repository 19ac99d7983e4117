"""What a `retry` changes: an image that is pinned, keys that are kept again, other limits."""

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from submitter import images, plan
from submitter.cli.outfit import digest_now
from submitter.cli.output import note
from submitter.errors import ConfigurationError
from submitter.history import Choose, Generation
from submitter.numbers import NumberSet
from submitter.preflight import check_image
from submitter.registry import LookUp
from submitter.request import find_queue
from submitter.retry import Changes
from submitter.secrets import collect
from submitter.selection import Selection
from submitter.tracking import API_KEY, api_key

if TYPE_CHECKING:
    from submitter.cli.connection import Connection


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Options of `run` that a retry may change, named as there; None is as it was."""

    queue: str | None = None
    image: str | None = None
    num_memory: int | None = None
    num_gpu: int | None = None
    num_hours: float | None = None


def changes(connection: "Connection", sweep: str, limits: Limits) -> Changes:
    """Return what is to be different from the last time that the runs of a sweep were sent.

    Raises:
        ConfigurationError: There is no such queue, or a key that the runs need is not there.
        UsageError: There is no such sweep, or a change can never work.
    """
    _, generation = connection.generation(sweep, None)
    if limits.queue and not limits.image:
        queue = find_queue(connection.contract, limits.queue)
        for image in {request.spec.image for request in generation.newest_request().values() if request.spec}:
            with LookUp(image) as look_up:
                check_image(look_up, queue, say=note)
    asked = Changes(
        queue=limits.queue,
        image=limits.image and _pinned(connection, generation, limits.image, limits.queue),
        memory_mib=limits.num_memory,
        gpus=limits.num_gpu,
        timeout_seconds=None if limits.num_hours is None else plan.timeout_seconds(limits.num_hours),
    )
    if not (missing := connection.missing_keys(generation)) or generation.record is None:
        return asked
    command = generation.record.command
    key = api_key(None, command, os.environ) if API_KEY in missing else None
    if API_KEY in missing and key is None:
        raise ConfigurationError(
            "The W&B key that the runs were given is kept no more, and there is none here.",
            f"Run `wandb login`, or set {API_KEY}.",
        )
    secrets = collect(sorted(missing - {API_KEY}), os.environ, wandb_key=key)
    connection.keep(secrets)
    return replace(asked, secrets=secrets.references(connection.contract.secret_arn))


def _pinned(connection: "Connection", generation: Generation, image: str, queue: str | None) -> str:
    """Return the image by what its name means now, having looked whether the queues' instances can run it."""
    names = {queue} if queue else {request.queue for request in generation.newest_request().values()}
    digests = {digest_now(image, find_queue(connection.contract, name)) for name in names}
    return images.pinned(image, next(iter(digests)))


def choose_by(selection: Selection) -> Choose:
    """Return what chooses runs by their parameters: which of them have failed, `retry` finds out itself."""
    known = replace(selection, failed=False)
    return lambda generation: NumberSet(run.number for run in known.choose(generation.runs(), generation.axes))
