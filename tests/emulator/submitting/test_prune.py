"""Taking away what nobody needs: definitions, keys and old sweeps, and nothing else."""

import io
import itertools
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from submitter.errors import ConfigurationError, UsageError
from submitter.numbers import NumberSet
from submitter.prune import Pruning
from submitter.secrets import Secrets, SecretStore
from submitter.session import Clock
from submitter.status import StatusReader

QUEUE = "c5a-large-spot"
Submitter = Callable[..., Any]


def run(submitter: Submitter, name: str, image: str, command: str = "true", *more: str) -> None:
    line = ("run", "--queue", QUEUE, "--name", name, "--image", image, "--command", command, "--no-seed")
    done = submitter(*line, *more)
    assert done.code == 0, done.err


def active(aws: Callable[..., Any]) -> set[str]:
    found = aws("batch").describe_job_definitions(status="ACTIVE")["jobDefinitions"]
    return {definition["containerProperties"]["image"] for definition in found}


def finish(submitter: Submitter, name: str) -> None:
    assert submitter("wait", name, "--poll", "0.1").code == 0


def test_only_definitions_that_no_unfinished_run_has_are_taken_away(
    submitter: Submitter, aws: Callable[..., Any]
) -> None:
    run(submitter, "done", "trainer:1")
    run(submitter, "running", "trainer:2", "exec sleep 60")
    finish(submitter, "done")
    foreign = {"image": "foreign:1", "command": ["true"], "vcpus": 1, "memory": 512}
    aws("batch").register_job_definition(
        jobDefinitionName="rl-batch-foreign", type="container", containerProperties=foreign
    )
    shown = submitter("prune", "--json").document
    assert (shown["gone"], len(shown["definitions"]), shown["sweeps"]) == (False, 1, [])
    assert active(aws) == {"trainer:1", "trainer:2", "foreign:1"}
    assert submitter("prune", "--yes").code == 0
    assert active(aws) == {"trainer:2", "foreign:1"}
    run(submitter, "done", "trainer:1", "true", "--new")
    assert active(aws) == {"trainer:1", "trainer:2", "foreign:1"}


def test_without_an_answer_nothing_is_taken_away(
    submitter: Submitter, aws: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(submitter, "done", "trainer:1")
    finish(submitter, "done")
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda _: "n")
    asked = submitter("prune", "--sweeps-older-than", "0")
    assert (asked.code, active(aws)) == (1, {"trainer:1"})
    stays, lost, *_ = asked.err.splitlines()
    assert stays == "What unfinished runs need stays."
    assert lost.startswith("Of such a sweep nobody can tell any more which runs it had and how they ended")
    gone = submitter("prune", "--yes")
    assert gone.out.startswith("1 job definition: rl-batch-")
    assert gone.err.splitlines()[-1] == "They are gone."
    assert submitter("prune", "--yes").out == "Everything is needed.\n"
    assert submitter("prune", "--yes", "--json").document["definitions"] == []


def test_without_a_terminal_one_is_told_how_to_agree(
    submitter: Submitter, aws: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(submitter, "done", "trainer:1")
    finish(submitter, "done")
    monkeypatch.setattr("sys.stdin", io.StringIO())
    refused = submitter("prune")
    assert (refused.code, refused.err.splitlines()[-1]) == (2, "Add --yes.")
    assert "[y/N]" not in refused.err
    assert active(aws) == {"trainer:1"}


def test_keys_that_no_unfinished_run_refers_to_lose_their_label(
    submitter: Submitter, aws: Callable[..., Any], contract: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for value, name, command in (("sentinel-1", "done", "true"), ("sentinel-2", "running", "exec sleep 60")):
        monkeypatch.setenv("HF_TOKEN", value)
        run(submitter, name, "trainer:1", command, "--secret", "HF_TOKEN")
    finish(submitter, "done")

    def labels() -> set[str]:
        stages = aws("secretsmanager").describe_secret(SecretId=contract.secret_arn)["VersionIdsToStages"]
        return {label for found in stages.values() for label in found if label.startswith("key-")}

    before = labels()
    assert len(before) == 2
    pruned = submitter("prune", "--yes", "--json")
    assert "sentinel" not in pruned.out + pruned.err
    (gone,) = pruned.document["labels"]
    assert labels() == before - {gone}


def test_a_key_that_somebody_comes_to_need_while_it_is_taken_away_is_given_back(
    machine: Any,
    make_machine: Callable[[], Any],
    fault: Callable[..., None],
    update_environment: Callable[..., None],
    wait_until: Callable[..., Any],
) -> None:
    """Their run has seen it there, so that they do not put it; here it does not start at that very moment."""
    update_environment(state="DISABLED")
    secrets, other = Secrets({"HF_TOKEN": "token"}), make_machine()
    store = SecretStore(other.session, other.contract.secret_arn)
    store.put(secrets, set)
    it, now = pruning(machine), machine.clock.now()
    unneeded = it.look(now=now, older_than=None)
    assert unneeded.labels == (secrets.label,)
    fault("secretsmanager", "UpdateSecretVersionStage", "delay", count=1, seconds=200)
    with ThreadPoolExecutor(1) as pool:
        gone = pool.submit(it.take_away, unneeded, now=now, older_than=None)
        wait_until(lambda: machine.server.control.faults.rules()[0]["count"] == 0)
        order = other.order([1], "exec sleep 600 # {seed}", secrets=secrets.references(other.contract.secret_arn))
        other.submit(order, ready=lambda _: store.put(secrets, set))
        assert not other.calls("secretsmanager")["UpdateSecretVersionStage"], "it is taken away after the run's look"
        machine.server.control.advance(200)
        assert gone.result().labels == ()
    assert store.labels() == {secrets.label}
    other.cancel()


def test_old_sweeps_are_forgotten_when_asked_and_only_when_their_runs_have_ended(submitter: Submitter) -> None:
    run(submitter, "old", "trainer:1")
    run(submitter, "old", "trainer:1", "true", "--new")
    run(submitter, "running", "trainer:1", "exec sleep 60")
    finish(submitter, "old")
    assert submitter("prune", "--sweeps-older-than", "30", "--json").document["sweeps"] == []
    (old,) = submitter("prune", "--sweeps-older-than", "0", "--json").document["sweeps"]
    assert old.endswith("/old")
    assert submitter("prune", "--sweeps-older-than", "0", "--yes").code == 0
    assert submitter("status", "old").code == 2
    listed = [one["sweep"].rpartition("/")[2] for one in submitter("list", "--json").document["sweeps"]]
    assert listed == ["running"]


def test_other_peoples_sweeps_are_forgotten_by_force_only(submitter: Submitter) -> None:
    for owner in ("bob", "carol"):
        run(submitter, "old", "trainer:1", "true", "--owner", owner)
    run(submitter, "own", "trainer:1")
    for sweep in ("bob/old", "carol/old", "own"):
        finish(submitter, sweep)
    line = ("prune", "--sweeps-older-than", "0", "--json")
    shown = submitter(*line)
    (own,) = shown.document["sweeps"]
    assert own.endswith("/own")
    assert "Old sweeps of others stay (1 of bob, 1 of carol): --force forgets them too." in shown.err.splitlines()
    assert submitter(*line, "--yes").document["sweeps"] == [own]
    forced = submitter(*line, "--force", "--yes")
    assert (forced.document["sweeps"], forced.err) == (["bob/old", "carol/old"], "")


def pruning(machine: Any) -> Pruning:
    store = SecretStore(machine.session, machine.contract.secret_arn)
    return Pruning(machine.ledger, machine.batch, store, machine.contract.job_role_arn)


def forget_all(machine: Any) -> tuple[str, ...]:
    """Take away what can go, old or not; return the sweeps that are gone."""
    it, now = pruning(machine), machine.clock.now()
    return it.take_away(it.look(now=now, older_than=-1), now=now, older_than=-1).sweeps


def test_a_sweep_that_somebody_submits_to_meanwhile_stays(
    machine: Any, make_machine: Callable[[], Any], wait_until: Callable[..., Any]
) -> None:
    """Its jobs would go on, and nobody would know of them."""
    machine.run([1], command="true # {seed}")
    wait_until(lambda: machine.status().over)
    other, describe, looks = make_machine(), machine.batch.describe, itertools.count(1)

    def and_then_somebody_submits(ids: Any) -> Any:
        found = describe(ids)
        if next(looks) == 2:
            other.run([1, 2], command="true # {seed}")
        return found

    machine.batch.describe = and_then_somebody_submits
    assert forget_all(machine) == ()
    assert [entry.n for entry in other.ledger.entries("ada/first")] == [1, 2]


@pytest.mark.parametrize("begun_again", [False, True])
def test_a_run_whose_sweep_is_forgotten_under_it_says_so_and_submits_nothing(
    machine: Any, make_machine: Callable[[], Any], wait_until: Callable[..., Any], *, begun_again: bool
) -> None:
    """What it was about to put would be an entry without those before it."""
    machine.run([1, 2], command="true # {seed}")
    wait_until(lambda: machine.status().over)
    entries, other = machine.ledger.entries("ada/first"), make_machine()
    assert forget_all(other) == ("ada/first",)
    if begun_again:
        other.run([1], command="true # {seed}")
    left = other.ledger.all_entries()
    with pytest.raises(UsageError, match="has forgotten the sweep ada/first meanwhile"):
        machine.submit(machine.order([1, 2, 3], "true # {seed}"), entries=entries)
    assert other.ledger.all_entries() == left
    assert machine.run([1, 2, 3], "true # {seed}").submitted == NumberSet([2, 3] if begun_again else [1, 2, 3])


def test_a_cancel_whose_sweep_is_forgotten_under_it_says_so(
    machine: Any, make_machine: Callable[[], Any], wait_until: Callable[..., Any]
) -> None:
    machine.run([1, 2], command="false # {seed}")
    wait_until(lambda: machine.status().over)
    entries, other = machine.ledger.entries, make_machine()

    def and_then_it_is_forgotten(sweep: str) -> Any:
        found = entries(sweep)
        if found:
            forget_all(other)
        return found

    machine.ledger.entries = and_then_it_is_forgotten
    with pytest.raises(UsageError, match="has forgotten the sweep ada/first meanwhile"):
        machine.cancel()
    assert other.ledger.all_entries() == {}


def test_a_command_that_looks_again_says_that_its_sweep_is_forgotten(
    make_machine: Callable[[], Any], submitter: Submitter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one that has sent runs, whose jobs ended before anybody looked; what it has sent is told all the same."""
    line = ("run", "--queue", QUEUE, "--image", "trainer:1", "--owner", "ada", "--name", "first")
    submitter(*line, "--command", "true # {seed}")
    read = StatusReader.read

    def forget_first(self: StatusReader, sweep: str, **options: Any) -> Any:
        other = make_machine()
        entries = other.ledger.entries(sweep)
        assert other.ledger.forget(sweep, entries)
        monkeypatch.setattr(StatusReader, "read", read)
        return read(self, sweep, **options)

    monkeypatch.setattr(StatusReader, "read", forget_first)
    done = submitter(*line, "--command", "true # {seed}", "--num-seed", "2", "--json")
    assert (done.code, done.document["submitted"], done.document["counts"]) == (2, 1, None)
    assert "has forgotten the sweep ada/first meanwhile" in done.err


def test_waiting_ends_when_the_sweep_is_forgotten_and_begun_again(
    machine: Any, make_machine: Callable[[], Any], submitter: Submitter, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.run([1], command="exec sleep 600 # {seed}")
    other = make_machine()

    def meanwhile(_: float) -> None:
        other.cancel()
        assert other.ledger.forget("ada/first", other.ledger.entries("ada/first"))
        other.run([1], command="true # {seed}")

    monkeypatch.setattr("submitter.cli.connection.Clock", lambda: Clock(sleep=meanwhile))
    done = submitter("wait", "ada/first")
    assert (done.code, done.err.splitlines()[-2:]) == (
        2,
        [
            "Error: Somebody's `prune` has forgotten the sweep ada/first meanwhile.",
            "See `submitter list`; `submitter run` begins it anew.",
        ],
    )


def test_what_is_left_of_a_long_sweep_is_not_taken_for_it(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its job names would be used again, and its runs be sent again under the same ids."""
    monkeypatch.setattr("submitter.ledger._DELETES_AT_ONCE", 2)
    for seeds in range(1, 6):
        machine.run(range(seeds), command="true # {seed}")
    entries = machine.ledger.entries("ada/first")
    transact, left = machine.ledger._client.transact_write_items, itertools.count()

    def broken_off(**request: Any) -> Any:
        if next(left):
            raise KeyboardInterrupt
        return transact(**request)

    monkeypatch.setattr(machine.ledger._client, "transact_write_items", broken_off)
    with pytest.raises(KeyboardInterrupt):
        machine.ledger.forget("ada/first", entries)
    monkeypatch.setattr(machine.ledger._client, "transact_write_items", transact)
    with pytest.raises(ConfigurationError, match="it has 2-4 of them"):
        machine.status()
    assert machine.ledger.forget("ada/first", machine.ledger.all_entries()["ada/first"])
    assert machine.ledger.all_entries() == {}


def test_a_job_of_a_week_that_only_its_name_is_known_of_is_not_forgotten(
    machine: Any, killed: Callable[..., Any]
) -> None:
    with killed(machine.ledger, "record", before=True):
        machine.run([1], command="exec sleep 600 # {seed}")
    it, later = pruning(machine), machine.clock.now() + 8 * 86_400
    assert not it.look(now=later, older_than=0)
    machine.batch.terminate(next(iter(machine.jobs_by_name().values())), "no more")


def test_what_is_left_of_a_sweep_is_said_and_can_be_forgotten(
    machine: Any, submitter: Submitter, wait_until: Callable[..., Any]
) -> None:
    """A person may delete items by hand, and the numbers that follow would be taken already."""
    for seeds in ([1], [1, 2], [1, 2, 3]):
        machine.run(seeds, command="true # {seed}")
        wait_until(lambda: machine.status().over)
    key = {"sweep": {"S": "ada/first"}, "n": {"N": "2"}}
    machine.session.client("dynamodb").delete_item(TableName="ledger", Key=key)
    for line in (("status",), ("show",), ("why",), ("logs",), ("wait",), ("repro",)):
        done = submitter(line[0], "ada/first", *line[1:])
        assert (done.code, done.out) == (3, ""), line
        assert done.err.startswith("Error: The ledger has lost entries of the sweep ada/first: it has 1,3 of them.")
    for command in (("cancel", "--yes"), ("retry",)):
        assert submitter(command[0], "ada/first", "--force", *command[1:]).code == 3
    again = ("run", "--queue", QUEUE, "--image", "trainer:1", "--owner", "ada", "--name", "first")
    for more in ((), ("--new",), ("--dry-run",)):
        assert submitter(*again, "--command", "true # {seed}", "--num-seed", "9", *more).code == 3
    assert submitter("run", "--like", "ada/first", "--name", "other", "--queue", QUEUE).code == 3
    assert submitter("prune", "--sweeps-older-than", "0", "--yes", "--force").code == 0
    assert machine.session.client("dynamodb").scan(TableName="ledger")["Items"] == []


def test_a_definition_that_is_taken_away_between_look_up_and_submission_is_registered_again(machine: Any) -> None:
    submit = machine.batch.submit
    sent: list[Any] = []

    def prune_first(request: Any, *, sign_until: float) -> Any:
        if not sent:
            machine.batch.deregister(request["jobDefinition"])
        sent.append(request)
        return submit(request, sign_until=sign_until)

    machine.batch.submit = prune_first
    assert len(machine.run([1, 2]).submitted) == 2
    machine.assert_each_run_has_one_job([1, 2])


def test_a_job_that_aws_does_not_show_yet_is_unfinished(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    secrets = {"HF_TOKEN": "arn:aws:secretsmanager:us-east-1:123456789012:secret:values:HF_TOKEN:key-12345678:"}
    machine.run([1], secrets=secrets)
    (entry,) = machine.ledger.entries("ada/first")
    store = SecretStore(machine.session, machine.contract.secret_arn)
    monkeypatch.setattr(store, "labels", lambda: {"key-12345678"})
    pruning = Pruning(machine.ledger, machine.batch, store, machine.contract.job_role_arn)
    monkeypatch.setattr(machine.batch, "describe", lambda _: {})
    assert not pruning.look(now=entry.at + 3600, older_than=0)
    assert pruning.labels_in_use(entry.at + 3600) == {"key-12345678"}
    unneeded = pruning.look(now=entry.at + 9 * 86_400, older_than=0)
    assert (unneeded.sweeps, unneeded.labels) == (("ada/first",), ("key-12345678",))
    assert len(unneeded.definitions) == 1
    assert not pruning.labels_in_use(entry.at + 9 * 86_400)
