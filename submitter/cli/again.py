"""What a `retry` changes: an image that is pinned, keys that are kept again, other limits."""

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from submitter import images, plan
from submitter.cli.outfit import digest_now
from submitter.history import Generation
from submitter.request import find_queue
from submitter.retry import Changes
from submitter.secrets import collect
from submitter.tracking import API_KEY, api_key

if TYPE_CHECKING:
    from submitter.cli.connection import Connection


def changes(
    connection: "Connection",
    sweep: str,
    *,
    queue: str | None,
    image: str | None,
    memory_mib: int | None,
    hours: float | None,
) -> Changes:
    """Return what is to be different from the last time that the runs of a sweep were sent.

    Raises:
        ConfigurationError: There is no such queue, or a key that the runs need is not there.
        UsageError: There is no such sweep, or a change can never work.
    """
    _, generation = connection.generation(sweep, None)
    asked = Changes(
        queue=queue,
        image=image and _pinned(connection, generation, image, queue),
        memory_mib=memory_mib,
        timeout_seconds=None if hours is None else plan.timeout_seconds(hours),
    )
    if not (missing := connection.missing_keys(generation)) or generation.record is None:
        return asked
    command = generation.record.command
    key = api_key(None, command, os.environ) if API_KEY in missing else None
    secrets = collect(sorted(missing - {API_KEY}), os.environ, wandb_key=key)
    connection.keep(secrets)
    return replace(asked, secrets=secrets.references(connection.contract.secret_arn))


def _pinned(connection: "Connection", generation: Generation, image: str, queue: str | None) -> str:
    """Return the image by what its name means now, having looked whether the queues' instances can run it."""
    names = {queue} if queue else {request.queue for request in generation.newest_request().values()}
    digests = {digest_now(image, find_queue(connection.contract, name)) for name in names}
    return images.pinned(image, next(iter(digests)))
