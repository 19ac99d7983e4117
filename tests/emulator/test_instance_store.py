"""The script that a host runs when it boots, with stand-ins for the commands that look at disks and change them."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "infra" / "instance_store.sh"
NVME = "Amazon EC2 NVMe Instance Storage"
ROOT_DISK = "/dev/nvme0n1 Amazon Elastic Block Store"


@pytest.fixture
def boot(tmp_path: Path) -> Callable[..., tuple[list[str], str]]:
    """Run the script with these disks; return the commands that it ran, and its output."""

    def run(disks: list[str], *, answers: dict[str, str] | None = None) -> tuple[list[str], str]:
        commands = tmp_path / "bin"
        commands.mkdir()
        log = tmp_path / "log"
        # What each command does after it is recorded; by default it succeeds.
        defaults = {
            "systemctl": "echo inactive; exit 3",
            "blkid": "exit 2",
            "lsblk": "printf '%s\\n' " + _quoted(disks),
        }
        names = ["systemctl", "blkid", "lsblk", "mdadm", "dnf", "mkfs.xfs", "mkdir", "mount", "umount", "cp"]
        for name in names:
            then = {**defaults, **(answers or {})}.get(name, "exit 0")
            if then == "missing":
                continue
            (commands / name).write_text(f'#!/bin/sh\necho "{name} $*" >> {log}\n{then}\n')
            (commands / name).chmod(0o755)
        (commands / "awk").symlink_to(_which("awk"))
        environment = {"PATH": str(commands)}
        done = subprocess.run(  # a process: the script is the unit
            [_which("bash"), SCRIPT], env=environment, capture_output=True, text=True, check=True
        )
        quiet = ("lsblk", "systemctl", "blkid")
        return [line for line in log.read_text().splitlines() if not line.startswith(quiet)], done.stdout

    return run


def _which(name: str) -> str:
    return next(path for folder in os.get_exec_path() if os.access(path := f"{folder}/{name}", os.X_OK))


def _quoted(lines: list[str]) -> str:
    return " ".join(f"'{line}'" for line in lines)


MOUNTED = [
    "mkdir -p /mnt/instance-store",
    "mount LABEL=instance-store /mnt/instance-store",
    "mkdir -p /var/lib/docker /mnt/instance-store/docker",
    "cp --archive --no-clobber /var/lib/docker/. /mnt/instance-store/docker/",
    "mount --bind /mnt/instance-store/docker /var/lib/docker",
    "mkdir -p /var/lib/containerd /mnt/instance-store/containerd",
    "cp --archive --no-clobber /var/lib/containerd/. /mnt/instance-store/containerd/",
    "mount --bind /mnt/instance-store/containerd /var/lib/containerd",
]


def test_images_and_containers_are_kept_on_the_instance_store(boot: Any) -> None:
    commands, said = boot([ROOT_DISK, f"/dev/nvme1n1 {NVME}"])
    assert commands == ["mkfs.xfs -q -f -L instance-store /dev/nvme1n1", *MOUNTED]
    assert said == "instance store: images and containers are on /dev/nvme1n1\n"


def test_several_instance_stores_are_striped(boot: Any) -> None:
    commands, _ = boot([ROOT_DISK, f"/dev/nvme1n1 {NVME}", f"/dev/nvme2n1 {NVME}"])
    assert commands == [
        "mdadm --create /dev/md/instance-store --run --level=0 --raid-devices=2 /dev/nvme1n1 /dev/nvme2n1",
        "mkfs.xfs -q -f -L instance-store /dev/md/instance-store",
        *MOUNTED,
    ]


def test_the_first_of_several_is_used_where_they_cannot_be_striped(boot: Any) -> None:
    commands, _ = boot([f"/dev/nvme1n1 {NVME}", f"/dev/nvme2n1 {NVME}"], answers={"mdadm": "missing", "dnf": "exit 1"})
    assert commands[1:] == ["mkfs.xfs -q -f -L instance-store /dev/nvme1n1", *MOUNTED]


def test_a_reboot_mounts_what_is_there_and_formats_nothing(boot: Any) -> None:
    commands, _ = boot([f"/dev/nvme1n1 {NVME}"], answers={"blkid": "exit 0"})
    assert commands == MOUNTED


@pytest.mark.parametrize(
    ("disks", "answers", "said"),
    [
        ([ROOT_DISK], {}, "this instance type has none"),
        (
            [f"/dev/nvme1n1 {NVME}"],
            {"systemctl": "echo active"},
            "Docker is already running, so it keeps the root volume",
        ),
        (
            [f"/dev/nvme1n1 {NVME}"],
            {"systemctl": "echo activating; exit 3"},
            "Docker is already running, so it keeps the root volume",
        ),
        ([f"/dev/nvme1n1 {NVME}"], {"mkfs.xfs": "exit 1"}, "could not be set up, the root volume is used"),
    ],
)
def test_the_root_volume_is_used_where_there_is_no_instance_store_or_it_fails(
    boot: Any, disks: list[str], answers: dict[str, str], said: str
) -> None:
    """A host that does not start costs money until somebody looks."""
    commands, output = boot(disks, answers=answers)
    assert not any(line.startswith("mount") for line in commands)
    assert output == f"instance store: {said}\n"


def test_containerd_keeps_its_folder_while_it_runs(boot: Any) -> None:
    """Its files are open: it would go on with those, and not find them again."""
    running = '[ "$2" = containerd ] && echo active || echo inactive'
    commands, said = boot([f"/dev/nvme1n1 {NVME}"], answers={"systemctl": running})
    assert commands[1:] == MOUNTED[:5]
    assert "containerd is already running, so its own folder keeps the root volume" in said


def test_neither_folder_is_moved_where_the_second_cannot_be(boot: Any) -> None:
    full = 'case "$*" in *containerd*) exit 1 ;; esac'
    commands, said = boot([f"/dev/nvme1n1 {NVME}"], answers={"cp": full})
    assert commands[-2:] == [MOUNTED[6], "umount /var/lib/docker"]
    assert said == "instance store: could not be set up, the root volume is used\n"
