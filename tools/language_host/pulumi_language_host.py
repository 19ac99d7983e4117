"""The Python language host: what Pulumi's engine asks for to run a Python program (pulumi/proto/language.proto).

The official one is a Go program that is not published as a module. This one stands beside a CLI that was built from its
module; it starts one `pulumi_language_program.py` for each Run. The engine passes its own address, reads the port that
is printed here, and ends the host by SIGINT to the process group. Files here are copied into a cache and run as
scripts, so they import nothing of this project.
"""

# ruff: noqa: ARG002, N802 - the names of methods and their arguments are the protocol's
# ruff: noqa: E402 - the effect of a signal must be set before the imports, which take half a second
from __future__ import annotations

import signal

signal.signal(signal.SIGINT, signal.SIG_DFL)

import contextlib
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

try:
    import grpc
    from pulumi.runtime.proto import language_pb2 as language
    from pulumi.runtime.proto import language_pb2_grpc, plugin_pb2
except ImportError as error:
    sys.exit(f"{sys.executable} lacks the Pulumi SDK ({error}): make the environment that Pulumi.yaml names.")

if TYPE_CHECKING:
    from google.protobuf.empty_pb2 import Empty

PROGRAM = Path(__file__).with_name("pulumi_language_program.py")
EXIT_AFTER_MESSAGE = 32  # the exit code, Pulumi's own, of a program whose error the user has already been shown


class NoEnvironmentError(Exception):
    """The virtual environment that Pulumi.yaml names has no Python."""


class LanguageHost(language_pb2_grpc.LanguageRuntimeServicer):
    """Answers the engine; `close` ends the programs that still run."""

    def __init__(self, engine_address: str) -> None:
        self._engine_address = engine_address
        self._programs: set[subprocess.Popen[bytes]] = set()

    def Handshake(
        self, request: language.LanguageHandshakeRequest, context: grpc.ServicerContext
    ) -> language.LanguageHandshakeResponse:
        """Begin; the engine's address came as an argument already."""
        return language.LanguageHandshakeResponse()

    def GetPluginInfo(self, request: Empty, context: grpc.ServicerContext) -> plugin_pb2.PluginInfo:
        """Give the host's version, which is the SDK's."""
        return plugin_pb2.PluginInfo(version=importlib.metadata.version("pulumi"))

    def GetRequiredPackages(
        self, request: language.GetRequiredPackagesRequest, context: grpc.ServicerContext
    ) -> language.GetRequiredPackagesResponse:
        """Name the plugins that the installed SDK packages need, as each says in its pulumi-plugin.json."""
        packages = []
        for folder in _import_path(request.info):
            for path in sorted(folder.glob("*/pulumi-plugin.json")):
                plugin = json.loads(path.read_text())
                if plugin.get("resource"):
                    name, version, server = (str(plugin.get(key, "")) for key in ("name", "version", "server"))
                    packages.append(
                        plugin_pb2.PackageDependency(name=name, kind="resource", version=version, server=server)
                    )
        return language.GetRequiredPackagesResponse(packages=packages)

    def About(self, request: language.AboutRequest, context: grpc.ServicerContext) -> language.AboutResponse:
        """Name the interpreter, for `pulumi about`."""
        python = _interpreter(request.info)
        version = subprocess.run([python, "--version"], check=False, capture_output=True, text=True).stdout
        return language.AboutResponse(executable=str(python), version=version.removeprefix("Python ").strip())

    def GetProgramDependencies(
        self, request: language.GetProgramDependenciesRequest, context: grpc.ServicerContext
    ) -> language.GetProgramDependenciesResponse:
        """List the installed distributions, without those that another one needs unless all are asked for."""
        path = [str(folder) for folder in _import_path(request.info)]
        found = {_normal(item.name): item for item in importlib.metadata.distributions(path=path)}
        needed = {_normal(line) for item in found.values() for line in item.requires or ()}
        chosen = sorted(found if request.transitiveDependencies else found.keys() - needed)
        return language.GetProgramDependenciesResponse(
            dependencies=[language.DependencyInfo(name=name, version=found[name].version) for name in chosen]
        )

    def Run(self, request: language.RunRequest, context: grpc.ServicerContext) -> language.RunResponse:
        """Run the program to its end, its output going where the host's goes, which is where the engine listens."""
        try:
            python = _interpreter(request.info)
        except NoEnvironmentError as error:
            return language.RunResponse(error=str(error))
        # A session of its own keeps the engine's SIGINT to this host from becoming a traceback of the program.
        program = subprocess.Popen(
            [python, "-u", PROGRAM, self._engine_address],
            cwd=request.info.program_directory,
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        self._programs.add(program)
        context.add_callback(lambda: _end(program))
        program.communicate(request.SerializeToString())
        self._programs.discard(program)
        if program.returncode == EXIT_AFTER_MESSAGE:
            return language.RunResponse(bail=True)
        if program.returncode < 0:
            return language.RunResponse(error=f"the program was ended by {signal.Signals(-program.returncode).name}")
        if program.returncode:
            return language.RunResponse(error=f"Program exited with non-zero exit code: {program.returncode}")
        return language.RunResponse()

    def close(self) -> None:
        """End every program that still runs."""
        for program in list(self._programs):
            _end(program)


def _interpreter(info: language.ProgramInfo) -> Path:
    """The Python of `runtime.options.virtualenv`, relative to the project's folder; without it the host's own."""
    named = info.options.fields["virtualenv"].string_value
    if not named:
        return Path(sys.executable)
    python = Path(info.root_directory, named, "bin", "python")
    if not python.exists():
        raise NoEnvironmentError(
            f"there is no Python in {python.parent.parent}, which Pulumi.yaml names as virtualenv: make it, "
            "e.g. with `uv sync`, and try again"
        )
    return python


def _import_path(info: language.ProgramInfo) -> list[Path]:
    """The folders in which the program's interpreter has its packages."""
    python = _interpreter(info)
    if python.parent.parent == Path(sys.prefix) or python == Path(sys.executable):
        return [Path(folder) for folder in sys.path[1:]]
    return sorted(python.parent.parent.glob("lib/python3*/site-packages"))


def _normal(requirement: str) -> str:
    """The name at the beginning of a requirement, in PyPI's normal form."""
    name = re.match(r"[\w.-]+", requirement)
    return re.sub(r"[-_.]+", "-", name[0]).lower() if name else ""


def _end(program: subprocess.Popen[bytes]) -> None:
    """Kill the program and all that it started; a program has nothing to clean up, its resources are the engine's."""
    if program.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)


def main() -> None:
    """Serve until SIGINT or SIGTERM, or until the engine, which holds the other end of standard input, is gone."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    host = LanguageHost(engine_address=sys.argv[-1])
    unlimited = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    server = grpc.server(ThreadPoolExecutor(), options=unlimited)
    language_pb2_grpc.add_LanguageRuntimeServicer_to_server(host, server)
    sys.stdout.write(f"{server.add_insecure_port('127.0.0.1:0')}\n")
    server.start()
    sys.stdout.flush()

    def wait_for_engine() -> None:
        sys.stdin.buffer.read()
        stop.set()

    threading.Thread(target=wait_for_engine, daemon=True).start()
    stop.wait()
    host.close()
    server.stop(grace=None)
    os._exit(0)  # without waiting for the thread that reads standard input


if __name__ == "__main__":
    main()
