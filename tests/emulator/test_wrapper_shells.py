"""The wrapper run by real shells, each alone on PATH: what the user's program gets is compared byte by byte."""

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from submitter.errors import UsageError
from submitter.grid import Axis, grid_rows
from submitter.numbers import MAX_NUMBER, NumberSet
from submitter.sweep import NO_ROWS, Run, Runs, RunTable
from submitter.template import ArgStyle, Template
from submitter.wrapper import wrapper_argv

SHOW = f"""'{sys.executable}' -c 'import json, os, sys; print(json.dumps([sys.argv[1:], dict(os.environ)]))'"""
PRINT = r"printf '%s\0' x"
NONCE = "abcdefghij"

values = st.text(
    st.sampled_from("aé=-*?~#'\"\\$`%{}()|&;!, \t\n") | st.characters(exclude_characters="\0", codec="utf-8")
)


def few(examples: int) -> settings:
    return settings(
        max_examples=examples,
        derandomize=True,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )


@dataclass
class Shell:
    """A folder that is all of PATH: it holds one shell, as `sh` and, for bash, as `bash`."""

    name: str
    folder: Path
    cwd: Path

    def run(
        self, argv: list[str], *, index: int | None = None, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a container command, or the arguments after `sh`, in this shell and a clean environment."""
        where = {} if index is None else {"AWS_BATCH_JOB_ARRAY_INDEX": str(index)}
        return subprocess.run(
            [str(self.folder / "sh"), *argv[1:]],
            env={"PATH": str(self.folder), **where, **(env or {})},
            cwd=self.cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=60,
        )

    def words(self, argv: list[str], *, index: int | None = None) -> list[str]:
        """Return the arguments that the command printed, each ended by NUL."""
        done = self.run(argv, index=index)
        assert (done.returncode, done.stderr) == (0, b"")
        return done.stdout.decode().split("\0")[1:-1]


@pytest.fixture(params=["dash", "bash", "busybox"])
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> Shell:
    name: str = request.param
    found = shutil.which(name)
    if not found:
        pytest.skip(f"{name} is not installed")
    folder, cwd = tmp_path / "bin", tmp_path / "cwd"
    folder.mkdir()
    cwd.mkdir()
    (folder / "sh").symlink_to(found)
    if name == "bash":
        (folder / "bash").symlink_to(found)
    return Shell(name, folder, cwd)


def wrapped(template: Template, runs: Runs) -> list[str]:
    return wrapper_argv(template, NONCE, runs, vcpus=2)


def seed_runs(*seeds: int) -> Runs:
    return RunTable.product(NO_ROWS, seeds).runs()


@few(40)
@given(st.lists(st.tuples(values, values), min_size=1, max_size=4, unique=True), st.data())
def test_every_run_of_an_array_gets_its_own_values_byte_for_byte(
    shell: Shell, rows: list[tuple[str, str]], data: st.DataObject
) -> None:
    """In every kind of quotes, and in the same words as the rendered command has."""
    check_values(shell, rows, data.draw(st.integers(0, 2 * len(rows) - 1)))


def test_what_shells_treat_specially_arrives_unchanged(shell: Shell) -> None:
    special = [
        "$HOME",
        "$(echo x)",
        "`echo x`",
        "${X}",
        "$'x'",
        "a'b",
        'a"b',
        "\\",
        "\\n",
        "a\\",
        "*",
        "~",
        "%s%d",
        "-n",
        "--",
    ]
    special += ["", " ", "\n", "x\n\n", "=", "==a", "é☃", "{a,b}", "#x", "!!", "a\tb", "&", ";", "|", "<", ">", "1.5"]
    rows = list(pairwise(special))
    for index in range(len(rows)):
        check_values(shell, rows, index)


def check_values(shell: Shell, rows: list[tuple[str, str]], index: int) -> None:
    template = Template.parse(f'{PRINT} {{a}} p{{a}}s \'{{a}}\' "{{a}}" "$(printf %s {{b}}.)"', ("a", "b"))
    runs = RunTable.product(rows, [3, 0]).runs()
    _, (a, b), seed = runs[index]
    expected = [a, f"p{a}s", a, a, f"{b}.", "--seed", str(seed)]
    assert shell.words(wrapped(template, runs), index=index) == expected
    assert shell.words(["sh", "-c", template.render((a, b), seed)]) == expected


@few(25)
@given(st.lists(values, min_size=1, max_size=3, unique=True), st.sampled_from(get_args(ArgStyle)))
def test_added_values_arrive_as_one_argument_each(shell: Shell, items: list[str], style: ArgStyle) -> None:
    template = Template.parse(PRINT + "\n", ("a",), arg_style=style)
    runs = RunTable.product([(item,) for item in items], [7]).runs()
    for run in runs:
        expected = {
            "flag": ["--a", run.row[0], "--seed", "7"],
            "equals": [f"--a={run.row[0]}", "--seed=7"],
            "hydra": [f"a={run.row[0]}", "seed=7"],
        }
        assert shell.words(wrapped(template, runs), index=run.number - 1) == expected[style]


@few(40)
@given(st.data())
def test_any_choice_of_runs_of_a_sweep_that_was_extended_finds_its_values(shell: Shell, data: st.DataObject) -> None:
    """A retry is such a choice: some numbers, over several rectangles of the table."""
    letters = st.lists(st.sampled_from("abcd"), min_size=1, unique=True)
    table = RunTable()
    for _ in range(data.draw(st.integers(1, 3))):
        axes = [Axis("a", tuple(data.draw(letters))), Axis("b", tuple(data.draw(letters)))]
        seeds = data.draw(st.lists(st.integers(0, 9) | st.just(MAX_NUMBER), min_size=1, max_size=5))
        table += RunTable.product(grid_rows(axes), seeds).minus(table)
    numbers = NumberSet(data.draw(st.sets(st.integers(1, len(table)), min_size=1)))
    runs = table.runs(numbers)
    index = data.draw(st.integers(0, len(runs) - 1))
    number, (a, b), seed = runs[index]
    template = Template.parse(f"{PRINT} $WANDB_RUN_ID", ("a", "b"), arg_style="equals")
    expected = [f"{NONCE}-{number}", f"--a={a}", f"--b={b}", f"--seed={seed}"]
    assert shell.words(wrapped(template, runs), index=index) == expected


def test_ten_thousand_runs_in_one_array_are_told_apart(shell: Shell) -> None:
    axes = [Axis(name, tuple(f"{name}{index}" for index in range(10))) for name in "abc"]
    table = RunTable.product(grid_rows(axes), range(11, 21))
    scattered = table.runs(NumberSet(number for number in range(1, 10_001) if number * 37 % 101 < 10))
    template = Template.parse(f"{PRINT} {{a}} {{b}} {{c}} {{seed}}", ("a", "b", "c"))
    for runs in (table.runs(), scattered):
        argv = wrapped(template, runs)
        for index in (0, 1, 9, len(runs) // 2, len(runs) - 1):
            run = runs[index]
            assert shell.words(argv, index=index) == [*run.row, str(run.seed)]


def test_a_plain_job_takes_the_first_run(shell: Shell) -> None:
    argv = wrapped(Template.parse(PRINT, ()), seed_runs(5, 6))
    assert shell.words(argv) == ["--seed", "5"]
    assert shell.words(argv, index=1) == ["--seed", "6"]


def test_an_index_that_the_array_does_not_have_runs_nothing(shell: Shell) -> None:
    done = shell.run(wrapped(Template.parse(PRINT, ()), seed_runs(5, 6)), index=2)
    assert (done.returncode, done.stdout) == (64, b"")
    assert done.stderr == b"submitter: this array has no index 2\n"


def test_a_command_without_places_for_values_runs_as_it_is(shell: Shell) -> None:
    assert shell.words(wrapped(Template.parse(f"{PRINT} --seed 7", ()), seed_runs(7))) == ["--seed", "7"]
    bare = RunTable.product(NO_ROWS, [None]).runs()
    assert shell.words(wrapped(Template.parse(PRINT, (), seed_flag=None), bare)) == []


def environment(shell: Shell, env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of the user's program in the run with the number 2, without what the shells set."""
    done = shell.run(wrapped(Template.parse(SHOW, ()), seed_runs(5, 6)), index=1, env=env)
    assert (done.returncode, done.stderr) == (0, b"")
    argv, found = json.loads(done.stdout)
    assert argv == ["--seed", "6"]
    return {name: value for name, value in found.items() if name not in {"PWD", "OLDPWD", "SHLVL", "_", "LC_CTYPE"}}


def test_equal_jobs_without_a_seed_get_no_run_id_of_their_own(shell: Shell) -> None:
    """An agent of W&B makes many runs, which would all be one if the variable named it."""
    agents = RunTable.product(NO_ROWS, range(1, 4)).runs()
    command = wrapped(Template.parse("printf '%s\\0' x \"$WANDB_RUN_ID$WANDB_RESUME\"", (), seed_flag=None), agents)
    assert [shell.words(command, index=index) for index in range(3)] == [[""]] * 3


def test_a_program_sees_its_run_id_and_its_share_of_the_cores_and_nothing_of_the_wrapper(shell: Shell) -> None:
    assert environment(shell, {}) == {
        "PATH": str(shell.folder),
        "AWS_BATCH_JOB_ARRAY_INDEX": "1",
        "WANDB_RUN_ID": f"{NONCE}-2",
        "WANDB_RESUME": "allow",
        "OMP_NUM_THREADS": "2",
        "MKL_NUM_THREADS": "2",
    }


def test_what_the_user_has_set_stays_but_for_the_run_id(shell: Shell) -> None:
    mine = {"WANDB_RESUME": "must", "OMP_NUM_THREADS": "8", "MKL_NUM_THREADS": "", "IFS": "x", "HOME": "/h"}
    found = environment(shell, {**mine, "WANDB_RUN_ID": "other"})
    assert found["WANDB_RUN_ID"] == f"{NONCE}-2"
    assert {name: found.get(name) for name in mine if name != "IFS"} == {
        name: value for name, value in mine.items() if name != "IFS"
    }


def test_the_place_for_artifacts_is_completed_for_the_run(shell: Shell) -> None:
    found = environment(shell, {"SUBMITTER_ARTIFACTS": f"s3://bucket/ada/my sweep/{NONCE}"})
    assert found["SUBMITTER_ARTIFACTS"] == f"s3://bucket/ada/my sweep/{NONCE}-2"


@pytest.mark.parametrize(
    ("said", "attempt", "run_id"),
    [("new", "1", "2"), ("new", "3", "2-3"), ("new-r4", "1", "2-r4"), ("new-r4", "2", "2-r4-2")],
)
def test_where_it_is_asked_for_later_attempts_have_run_ids_of_their_own(
    shell: Shell, said: str, attempt: str, run_id: str
) -> None:
    """The place for artifacts stays the run's: it finds its checkpoint there."""
    given = {"SUBMITTER_WANDB_RETRY": said, "AWS_BATCH_JOB_ATTEMPT": attempt, "SUBMITTER_ARTIFACTS": "s3://bucket/x"}
    found = environment(shell, given)
    assert found["WANDB_RUN_ID"] == f"{NONCE}-{run_id}"
    assert found["SUBMITTER_ARTIFACTS"] == "s3://bucket/x-2"


def test_the_users_text_is_expanded_in_the_container_only(shell: Shell) -> None:
    text = "printf '%s|' 'a  b' \"$HOME\" && printf %s \"$(printf 'e\"')\" {seed}\n"
    done = shell.run(wrapped(Template.parse(text, ()), seed_runs(4)), env={"HOME": "/in the container"})
    assert done.stdout == b'a  b|/in the container|e"4'


def test_the_exit_code_is_the_programs(shell: Shell) -> None:
    assert shell.run(wrapped(Template.parse("exit {seed}", ()), seed_runs(3))).returncode == 3


def test_bash_runs_the_users_text_where_the_image_has_it(shell: Shell) -> None:
    done = shell.run(wrapped(Template.parse("echo ${BASH_VERSION:+bash} $0 # {seed}", ()), seed_runs(1)))
    assert done.stdout == (b"bash bash\n" if shell.name == "bash" else b"sh\n")


fragments = [
    "a",
    " ",
    "'x y'",
    '"x y"',
    "\\'",
    '\\"',
    "$(printf ')')",
    '"$(printf "b c")"',
    "${X:-y}",
    "$((1<<2))",
]
quoting = st.lists(st.sampled_from([*fragments, "'", '"', "`", "\\", "$", "#"]), max_size=6).map("".join)


@pytest.mark.parametrize("shell", ["bash"], indirect=True)
@few(200)
@given(quoting)
def test_what_is_added_to_a_command_reaches_it_or_is_refused(shell: Shell, text: str) -> None:
    try:
        template = Template.parse(f"{PRINT} {text}", ())
    except UsageError:
        event("refused")
        return
    done = shell.run(["sh", "-c", template.render((), 3)])
    assert done.stdout.decode().split("\0")[-3:] == ["--seed", "3", ""]


@pytest.mark.parametrize("shell", ["bash"], indirect=True)
@few(200)
@given(quoting, quoting, st.text(st.sampled_from("b '\"\\$`\n"), max_size=5).map("{}!".format))
def test_a_value_stands_whole_in_any_quotes_or_is_refused(shell: Shell, before: str, after: str, value: str) -> None:
    """The seed is not named, so that an unfinished quote is refused too; a value with ! is never a plain one."""
    assume(not before.endswith("$"))  # ${v} is the shell's
    try:
        text = Template.parse(f"{PRINT} {before}{{v}}{after}", ("v",)).render((value,), 3)
    except UsageError:
        event("refused")
        return
    done = shell.run(["sh", "-c", text])
    assert any(value in word for word in done.stdout.decode().split("\0")), text


def test_a_run_is_what_the_table_says() -> None:
    """The tests above compare with the table, so the table is compared with the plain list here."""
    table = RunTable.product([("x",), ("y",)], [5, 6])
    assert list(table.runs()) == [Run(1, ("x",), 5), Run(2, ("y",), 5), Run(3, ("x",), 6), Run(4, ("y",), 6)]
