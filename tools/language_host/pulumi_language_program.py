"""Runs one Pulumi program: the engine's address as argument, the engine's RunRequest on standard input.

What a user sees is the official executor's: an exception is shown once with the frames of the user's code, a
`pulumi.RunError` as its message alone, and `sys.exit` in the program is its exit code.
"""

from __future__ import annotations

import asyncio
import logging
import os
import runpy
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

try:
    import pulumi
    from pulumi import runtime
    from pulumi.runtime.proto import language_pb2 as language
except ImportError as error:
    sys.exit(f"{sys.executable} lacks the Pulumi SDK ({error}): install the project's dependencies into it.")

EXIT_AFTER_MESSAGE = 32  # Pulumi's code for: failed, and the user has been told why


def configure(request: language.RunRequest, engine_address: str) -> None:
    """Tell the SDK which stack this is, its configuration, and where the engine listens."""
    runtime.configure(
        runtime.Settings(
            project=request.project,
            stack=request.stack,
            monitor=request.monitor_address,
            engine=engine_address,
            parallel=request.parallel,
            dry_run=request.dryRun,
            organization=request.organization,
            root_directory=request.info.root_directory,
        )
    )
    runtime.set_all_config(dict(request.config), list(request.configSecretKeys))


def execute(program: Path, parallel: int) -> None:
    """Run a program, a file or a folder with a __main__.py, and wait for all that it has registered."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    # Each registration occupies a thread until the engine answers, so fewer threads would limit `--parallel`.
    loop.set_default_executor(ThreadPoolExecutor(max(parallel, 1) * 4))
    # A program that fails leaves futures behind that nobody awaits, which asyncio would report.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    loop.run_until_complete(runtime.run_in_stack(lambda: run_file(program)))


def run_file(program: Path) -> None:
    """Run the program as Python runs a script."""
    runpy.run_path(str(program), run_name="__main__")


def explain(error: Exception, main_file: Path) -> str:
    """A traceback that begins at the user's program; of errors elsewhere, e.g. in an `apply`, the whole."""
    frame = error.__traceback__
    while frame is not None and Path(frame.tb_frame.f_code.co_filename).resolve() != main_file.resolve():
        frame = frame.tb_next
    lines = traceback.format_exception(type(error), error, frame or error.__traceback__)
    return "Program failed with an unhandled exception:\n" + "".join(lines)


def main() -> int:
    """Run the program that standard input describes and return the exit code."""
    request = language.RunRequest.FromString(sys.stdin.buffer.read())
    configure(request, engine_address=sys.argv[1])
    program = Path(request.info.program_directory, request.info.entry_point)
    main_file = program / "__main__.py" if program.is_dir() else program
    if not main_file.exists():
        pulumi.log.error(f"there is no program: {main_file} does not exist")
        return EXIT_AFTER_MESSAGE
    os.chdir(request.info.program_directory)
    sys.path[0] = str(main_file.parent)
    sys.argv = [str(program), *request.args]
    try:
        execute(program, request.parallel)
    except pulumi.RunError as error:
        pulumi.log.error(str(error))
        return EXIT_AFTER_MESSAGE
    except Exception as error:  # noqa: BLE001 - whatever the user's program raises is shown to the user
        pulumi.log.error(explain(error, main_file))
        return EXIT_AFTER_MESSAGE
    return 0


if __name__ == "__main__":
    sys.exit(main())
