"""`submitter build`."""

from pathlib import Path

import click

from submitter import images, render
from submitter.cli import options, run_options
from submitter.cli.outfit import build_and_push
from submitter.errors import UsageError
from submitter.stack import StackSource


@click.command("build")
@click.option(
    "--image",
    "--docker-tag",
    "image",
    metavar="IMAGE",
    callback=run_options.checked_image,
    help="The name that the image gets.  [default: the stack's repository]",
)
@run_options.archs
@run_options.build_arg
@click.option("-p", "--push", is_flag=True, help="Push it to its registry instead of keeping it in this Docker.")
@options.as_json
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=Path())
@click.pass_obj
def build_command(
    source: StackSource,
    /,
    *,
    image: str | None,
    archs: str,
    build_arg: tuple[str, ...],
    push: bool,
    as_json: bool,
    folder: Path,
) -> None:
    """Build the image of a folder's Dockerfile with docker buildx, for one platform or several, and push it.

    FOLDER is this one unless given.
    """
    if image is None and (image := options.connect(source).contract.image_repository) is None:
        raise UsageError("The stack has no image repository, so the image needs a name.", "Give --image NAME.")
    digest = build_and_push(
        images.BuildOptions(image=image, archs=archs, push=push, folder=folder, build_args=build_arg)
    )
    if as_json:
        click.echo(render.document("build", {"image": image, "digest": digest, "pushed": push}))
    else:
        click.echo(images.pinned(image, digest))
