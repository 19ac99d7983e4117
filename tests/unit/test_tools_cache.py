import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tools import cache


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "rl-batch" / "pulumi"


class Filling:
    """Fills a folder with one file, and counts."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, folder: Path) -> None:
        self.times += 1
        (folder / "pulumi").write_text("binary")


def fill(folder: Path, filling: Filling) -> None:
    with cache.locked():
        cache.filled(folder, filling)


def test_a_folder_is_filled_once(root: Path) -> None:
    filling = Filling()
    for _ in range(2):
        fill(root / "1.0-abc", filling)
    assert filling.times == 1
    assert (root / "1.0-abc" / "pulumi").read_text() == "binary"


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / "pulumi").write_text("bin"),
        lambda folder: (folder / "pulumi").write_text("BINARY"),
        lambda folder: (folder / "pulumi").chmod(0o600),
        lambda folder: (folder / "pulumi").unlink(),
        lambda folder: (folder / cache.MANIFEST).unlink(),
        lambda folder: (folder / cache.MANIFEST).write_text("{"),
    ],
    ids=["cut short", "overwritten", "not executable", "file gone", "manifest gone", "manifest half-written"],
)
def test_a_damaged_folder_is_filled_again(root: Path, damage: Callable[[Path], object]) -> None:
    filling, folder = Filling(), root / "1.0-abc"
    fill(folder, filling)
    damage(folder)
    assert not cache.complete(folder)
    fill(folder, filling)
    assert filling.times == 2
    assert (folder / "pulumi").read_text() == "binary"


def test_an_attempt_that_fails_half_way_leaves_nothing(root: Path) -> None:
    def half(folder: Path) -> None:
        (folder / "pulumi").write_text("bin")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), cache.locked():
        cache.filled(root / "1.0-abc", half)
    assert [path.name for path in root.iterdir()] == ["lock"]


def test_what_a_killed_process_left_is_removed_by_the_next_one(root: Path) -> None:
    (root / "tmp-abc" / "1.0-abc").mkdir(parents=True)
    fill(root / "1.0-abc", Filling())
    assert sorted(path.name for path in root.iterdir()) == ["1.0-abc", "lock"]


def test_of_two_at_once_one_fills_and_the_other_waits_and_finds_it(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filling, inside, go_on, waits = Filling(), threading.Event(), threading.Event(), threading.Event()
    monkeypatch.setattr(cache, "say", lambda _: waits.set())

    def slowly(folder: Path) -> None:
        inside.set()
        assert go_on.wait(30)
        filling(folder)

    def first() -> None:
        with cache.locked():
            cache.filled(root / "1.0-abc", slowly)

    threads = [threading.Thread(target=first), threading.Thread(target=fill, args=(root / "1.0-abc", filling))]
    threads[0].start()
    assert inside.wait(30)
    threads[1].start()
    assert waits.wait(30)
    go_on.set()
    for thread in threads:
        thread.join(30)
    assert filling.times == 1


def test_a_relative_cache_home_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """The XDG specification says so; a cache in whatever folder this runs in would be many caches."""
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    assert cache.root() == Path.home() / ".cache" / "rl-batch" / "pulumi"
