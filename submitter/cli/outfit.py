"""What `run` adds to the runs that were asked for: an image that is built or pinned, keys, and variables for W&B."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from submitter import images
from submitter.cli.output import note
from submitter.errors import ConfigurationError, UsageError
from submitter.hidden import readable
from submitter.history import Record
from submitter.preflight import check_image
from submitter.provenance import Commit, git_tag, pull_request
from submitter.registry import LookUp
from submitter.secrets import Secrets, collect
from submitter.tracking import API_KEY, api_key, tracks, variables

if TYPE_CHECKING:
    from infra.outputs import Queue
    from submitter.request import Prepared


@dataclass(frozen=True, kw_only=True)
class Extras:
    """The options of `run` that say where and with what, named as in the command line."""

    provider: str | None
    job_queue: str | None
    exp_script: str
    gpus: str | None
    log_dir: Path | None
    build: bool
    push: bool
    archs: str
    build_arg: tuple[str, ...]
    pin: bool
    keep_image: bool
    wandb_key: str | None = field(repr=False)
    secret: tuple[str, ...]
    auto_tag: bool

    @classmethod
    def take(cls, given: dict[str, Any]) -> Self:
        """Take these options out of all that were given."""
        return cls(**{option.name: given.pop(option.name) for option in fields(cls)})

    def kept(self) -> dict[str, Any]:
        """Return the options that the ledger keeps: whether the image was pinned, and what else was given.

        Of secrets only their names are kept.
        """
        given = {"secret": list(self.secret), "auto_tag": self.auto_tag}
        return {"pin": self.pin} | {name: value for name, value in given.items() if value}

    def secrets(self, command: str, variables: Mapping[str, str]) -> Secrets:
        """Return the values that only jobs may see; `variables` are those that everybody may.

        Raises:
            ConfigurationError: The command tracks its runs, and there is no key.
            UsageError: A named variable is not set.
        """
        return collect(self.secret, os.environ, wandb_key=api_key(self.wandb_key, command, os.environ, variables))

    def secrets_here(self, command: str) -> Secrets:
        """Return those of the values that are here: what only shows the runs needs none, and must show none."""
        try:
            key = api_key(self.wandb_key, command, os.environ)
        except ConfigurationError:
            key = None
        return collect([name for name in self.secret if os.environ.get(name)], os.environ, wandb_key=key)

    def variables(self, command: str, name: str, commit: Commit | None, secrets: Secrets) -> Mapping[str, str]:
        """Return the variables for W&B, where the command has to do with it, but for those that are secrets."""
        if API_KEY not in secrets.names and not tracks(command) and not self.auto_tag:
            return {}
        more = _auto_tags(commit) if self.auto_tag else []
        found = variables(os.environ, name=name, commit=commit, more_tags=more)
        return {variable: value for variable, value in found.items() if variable not in self.secret}

    def build_options(self, image: str) -> images.BuildOptions:
        """Return what is to be built."""
        return images.BuildOptions(image=image, archs=self.archs, push=self.push, build_args=self.build_arg)

    def build_image(self, image: str) -> str | None:
        """Build the image where that is asked for; return the digest of what was pushed.

        Raises:
            ConfigurationError: Docker cannot, or failed.
            UsageError: It can never work.
        """
        return build_and_push(self.build_options(image)) if self.build else None

    def check_build(self, image: str, queue: "Queue | None" = None) -> None:
        """Check what can be seen of a build before Docker is asked, or anything else.

        Raises:
            UsageError: It can never work, or the queue's instances could not run what it makes.
        """
        if self.push and not self.build:
            raise UsageError("--push pushes what --build has built.", "Add --build.")
        if self.build:
            images.check_build(self.build_options(image))
            if queue:
                images.check_platforms(self.build_options(image), queue.architecture, queue.name)


def _auto_tags(commit: Commit | None) -> list[str]:
    """Return the tags of CleanRL's benchmark script: `git describe --tags`, and the pull request."""
    tags = [tag] if (tag := git_tag()) else []
    if commit and (number := pull_request(commit.id)):
        tags.append(f"pr-{number}")
    return tags


def build_and_push(options: images.BuildOptions) -> str | None:
    """Build an image; log in to Amazon ECR first when it is to be pushed there. Return the digest of what was pushed.

    Raises:
        ConfigurationError: Docker cannot, or failed.
        UsageError: It can never work.
    """
    images.check_build(options)
    if options.push and images.is_ecr(options.image):
        import boto3  # noqa: PLC0415 - so that a build for another registry does not pay for it

        images.log_in_to_ecr(boto3.Session(), options.image)
    return images.build(options)


def outfit(
    prepared: "Prepared",
    extras: Extras,
    secrets: Secrets,
    before: Record | None,
    look_up: LookUp | None,
    *,
    secret_arn: str,
    fresh: bool,
    dry_run: bool,
) -> "Prepared":
    """Return the request with its image built and pinned, its keys by reference, and its variables for W&B.

    In a dry run nothing is built.

    Args:
        prepared: The request.
        extras: What it is to get.
        secrets: The values that only jobs may see.
        before: What the sweep was begun with, when it was.
        look_up: What its image's name means now, where that was asked already.
        secret_arn: The stack's secret.
        fresh: Whether it is begun afresh, so that it may have another image.
        dry_run: Whether nothing may be changed.

    Raises:
        ConfigurationError: The image could not be built.
        UsageError: The queue's instances cannot run the image, or nothing was begun that it could keep the image of.
    """
    spec, record, image = prepared.spec, prepared.record, prepared.record.image
    commit = None if record.commit is None else Commit(record.commit, bool(record.dirty))
    more = extras.variables(record.command, prepared.name, commit, secrets)
    typed = (prepared.name, vars(prepared.options), vars(record), spec.environment, spec.tags, more)
    secrets.check_hidden(readable(*typed, runs=prepared.asked.runs))
    if extras.build and not extras.push:
        note(f"Jobs get what the registry has as {image}, not what is built here: add --push.")
    digest = None if dry_run else extras.build_image(image)
    if extras.keep_image:
        digest = _begun_with(before) or digest
    now = None
    if not (dry_run and extras.build and extras.push):  # then the registry has another image
        now = _digest_now(images.pinned(image, digest), prepared.queue, look_up)
        if extras.pin and not extras.keep_image:
            digest = digest or now
    if digest is None and before and not fresh and (digest := before.digest):
        why = "The sweep is pinned" if now else f"What {image} means now is not known here"
        note(f"{why}, so the runs get what the sweep was begun with, {digest}.")
    return replace(
        prepared,
        record=replace(record, digest=digest, options={**record.options, **extras.kept()}),
        spec=replace(
            spec,
            image=images.pinned(image, digest),
            environment={**more, **spec.environment},
            secrets=secrets.references(secret_arn),
        ),
    )


def digest_now(image: str, queue: "Queue") -> str | None:
    """Return what the image's name means now; None where that cannot be told: without Docker, or without a log-in.

    Raises:
        UsageError: The queue's instances cannot run it.
    """
    with LookUp(image) as look_up:
        return _digest_now(image, queue, look_up)


def _digest_now(image: str, queue: "Queue", look_up: LookUp | None) -> str | None:
    """Return what the image's name means now, from what was asked already where that was about this image."""
    if look_up is None or look_up.image != image:
        return digest_now(image, queue)
    published = check_image(look_up, queue, say=note)
    return images.Reference.parse(image).digest or (published.digest if published else None)


def _begun_with(before: Record | None) -> str | None:
    """Return the digest of the image that the sweep was begun with; None when it was never pinned.

    Raises:
        UsageError: There is no such sweep.
    """
    if before is None:
        raise UsageError("--keep-image goes on with a sweep's image, and nothing was begun.", "Leave it out.")
    if before.digest is None:
        note("The sweep's image was never pinned, so it is used by its tag.")
    return before.digest
