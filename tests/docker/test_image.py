"""The image of this project's Dockerfile, in real containers."""

import json
import subprocess
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.docker.conftest import Engine

# Draws a frame into a window, reads the screen back, and says on which display, how many colours, and that it is there.
RENDER = """
import os, sys, pygame
pygame.init()
window = pygame.display.set_mode((320, 200))
window.fill((200, 30, 30))
pygame.draw.circle(window, (30, 200, 30), (160, 100), 50)
pygame.display.flip()
frame = pygame.surfarray.array3d(pygame.display.get_surface())
print(pygame.display.get_driver(), os.environ["DISPLAY"], len({tuple(c) for row in frame for c in row}), flush=True)
"""
AND_WAIT = RENDER + "sys.stdin.readline()\n"


def test_uv_run_downloads_nothing(engine: "Engine", image: str) -> None:
    """200 containers that begin by installing packages are 200 chances to fail, without a network one certainty."""
    command = "import gymnasium; print(gymnasium.make('CartPole-v1').reset(seed=1)[0].shape)"
    done = engine.run("--network=none", image, "uv", "run", "python", "-c", command)
    assert done.stdout == "(4,)\n"


def test_nothing_that_could_hold_a_secret_is_copied_into_it(engine: "Engine", image: str) -> None:
    there = engine.run(image, "ls", "-A", "/app").stdout.split()
    assert "examples" in there
    assert not [name for name in there if name in {".git", ".emulator", ".env", ".venv"} or name.startswith("Pulumi.")]


def test_the_example_trains_in_it_as_a_user_without_rights(engine: "Engine", image: str) -> None:
    command = "id -u; python examples/train.py --seed 1 --total-timesteps 600 >/dev/null && touch written && echo done"
    user, said = engine.run("--network=none", image, "bash", "-c", command).stdout.split()
    assert int(user) >= 1000
    assert said == "done"


def test_a_frame_is_really_rendered(engine: "Engine", image_with_pygame: str) -> None:
    driver, display, colours = engine.run(image_with_pygame, "python", "-c", RENDER).stdout.splitlines()[-1].split()
    assert driver == "x11"
    assert display.startswith(":")
    assert int(colours) >= 2, "a blank frame has one colour"


def test_two_containers_of_one_host_render_at_once_and_also_after_the_first_has_ended(
    engine: "Engine", image_with_pygame: str
) -> None:
    """AWS Batch puts containers on the host's network, where the sockets of their displays would collide."""
    command = ["docker", "run", "--rm", "--interactive", "--network=host", image_with_pygame, "python", "-c", AND_WAIT]

    def start() -> "subprocess.Popen[str]":
        return subprocess.Popen(
            command, env=engine.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def rendered(container: "subprocess.Popen[str]") -> str:
        assert container.stdout is not None
        line = next(line for line in container.stdout if line.startswith("x11"))
        _, display, colours = line.split()
        assert int(colours) >= 2
        return display

    def end(container: "subprocess.Popen[str]") -> None:
        container.communicate("\n", timeout=60)
        assert container.returncode == 0

    first, second = start(), start()
    displays = {rendered(first), rendered(second)}
    assert len(displays) == 2
    end(first)
    third = start()
    assert rendered(third) in displays | {":2"}
    end(second)
    end(third)


def test_ffmpeg_writes_a_video_that_can_be_played(engine: "Engine", image: str) -> None:
    make = "ffmpeg -loglevel error -f lavfi -i testsrc=duration=1:rate=25 -pix_fmt yuv420p video.mp4"
    show = "ffprobe -loglevel error -count_frames -show_entries stream=codec_name,nb_read_frames -of json video.mp4"
    (stream,) = json.loads(engine.run(image, "bash", "-c", f"{make} && {show}").stdout)["streams"]
    assert stream == {"codec_name": "h264", "nb_read_frames": "25"}


def test_sigterm_reaches_the_trainer(engine: "Engine", image: str, wait_until: Callable[..., None]) -> None:
    trainer = (
        "import signal, sys, time\n"
        "def save(*_):\n    print('saved', flush=True)\n    sys.exit(3)\n"
        "signal.signal(signal.SIGTERM, save)\n"
        "print('training', flush=True)\n"
        "while True: time.sleep(1)\n"
    )
    name = engine("docker", "run", "--detach", image, "python", "-c", trainer).stdout.strip()
    try:
        wait_until(lambda: "training" in engine("docker", "logs", name).stdout)
        engine("docker", "stop", "--time", "30", name)
        assert engine("docker", "logs", name).stdout == "training\nsaved\n"
        assert engine("docker", "wait", name).stdout.strip() == "3"
    finally:
        engine("docker", "rm", "--force", name)


def test_the_exit_code_is_the_commands(engine: "Engine", image: str) -> None:
    assert engine.run(image, "sh", "-c", "exit 7", check=False).returncode == 7


def test_children_that_nobody_waits_for_are_reaped(engine: "Engine", image: str) -> None:
    """Environments in subprocesses die unwaited for; their remains would fill the table of processes."""
    orphan = "(sh -c 'exit 0' & exec true); while grep -q '^State:.Z' /proc/[0-9]*/status 2>/dev/null; do :; done"
    assert engine.run(image, "timeout", "20", "bash", "-c", orphan).returncode == 0


def test_a_display_that_is_given_or_not_wanted_is_left_alone(engine: "Engine", image: str) -> None:
    shown = "cat /proc/[0-9]*/comm | grep -c Xvfb; echo ${DISPLAY-none}"
    assert engine.run("-e", "XVFB_SCREEN=", image, "bash", "-c", shown).stdout.split() == ["0", "none"]
    assert engine.run("-e", "DISPLAY=:77", image, "bash", "-c", shown).stdout.split() == ["0", ":77"]


def test_a_display_that_cannot_be_had_is_said_and_the_command_runs_all_the_same(engine: "Engine", image: str) -> None:
    done = engine.run("-e", "XVFB_SCREEN=nonsense", image, "sh", "-c", "echo ${DISPLAY-none}")
    assert done.stdout == "none\n"
    assert "Xvfb did not start" in done.stderr
