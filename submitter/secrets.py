"""Values that only jobs may see: a W&B key and others, kept as versions of the stack's one secret.

A person's values are one version, a JSON object, with a staging label that is made of a hash of it. Job definitions
name the label, never the secret as a whole, so that one person's jobs never get another's values. The values are in
PutSecretValue's request and nowhere else: not in a job's variables, a command line, the ledger or a file.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from submitter.errors import ConfigurationError, UsageError
from submitter.tracking import API_KEY

if TYPE_CHECKING:
    import boto3
    from mypy_boto3_secretsmanager import SecretsManagerClient
    from mypy_boto3_secretsmanager.type_defs import SecretVersionsListEntryTypeDef

# Source: AWS Secrets Manager User Guide, "AWS Secrets Manager quotas", of labels across all versions of a secret.
_MAX_LABELS: Final = 20
_MAX_BYTES: Final = 65_536
_LABEL_PREFIX: Final = "key-"
_TELLING: Final = 8
"""Characters of a value that is looked for elsewhere: shorter ones are in many texts by chance."""


@dataclass(frozen=True)
class Secrets:
    """Named values; neither `repr` nor `str` shows them."""

    _values: Mapping[str, str]

    def __repr__(self) -> str:
        return f"Secrets({', '.join(self.names)})"

    def __bool__(self) -> bool:
        return bool(self._values)

    @property
    def names(self) -> tuple[str, ...]:
        """The names, sorted."""
        return tuple(sorted(self._values))

    def reveal(self) -> dict[str, str]:
        """Return the values themselves, for the one place that hands them over."""
        return dict(self._values)

    @cached_property
    def version_id(self) -> str:
        """The id of the version that holds them, so that putting them again makes no second one."""
        return sha256(self.text.encode()).hexdigest()

    @property
    def text(self) -> str:
        """The version's content."""
        return json.dumps(self._values, sort_keys=True, separators=(",", ":"))

    @property
    def label(self) -> str:
        """The staging label of that version."""
        return f"{_LABEL_PREFIX}{self.version_id[:8]}"

    def check_hidden(self, texts: Iterable[str]) -> None:
        """Check that no value is in what everybody may read.

        Raises:
            UsageError: One is; the message has its name only.
        """
        telling = {name: value for name, value in self._values.items() if len(value) >= _TELLING}
        for text in texts if telling else ():
            for name, value in telling.items():
                if value in text:
                    raise UsageError(
                        f"The value of {name} is in the command, a name, a variable, a tag or a parameter, for all to "
                        "read.",
                        f"Leave it out there: jobs have it in the variable {name}.",
                    )

    def references(self, secret_arn: str) -> dict[str, str]:
        """Return what a job definition says of each name instead of a value.

        Source: Amazon ECS Developer Guide, "Pass Secrets Manager secrets through Amazon ECS environment variables".
        """
        return {name: f"{secret_arn}:{name}:{self.label}:" for name in self.names}


def collect(names: Sequence[str], environment: Mapping[str, str], *, wandb_key: str | None) -> Secrets:
    """Return the values of the `--secret` options, each from the variable of that name, and the W&B key.

    Raises:
        UsageError: A variable is not set.
    """
    values = {API_KEY: wandb_key} if wandb_key else {}
    for name in names:
        if not (value := environment.get(name)):
            raise UsageError(f"--secret {name} names a variable that is not set.", f"Set {name} to the value.")
        values.setdefault(name, value)
    secrets = Secrets(values)
    if len(secrets.text.encode()) > _MAX_BYTES:
        raise UsageError("The secrets are longer than AWS Secrets Manager takes.", f"It takes {_MAX_BYTES:,} bytes.")
    return secrets


class SecretStore:
    """The stack's secret."""

    def __init__(self, session: "boto3.Session", secret_arn: str) -> None:
        from submitter.session import client_config  # noqa: PLC0415 - so that `run --help` does not pay for boto3

        self._client: SecretsManagerClient = session.client("secretsmanager", config=client_config())
        self._arn = secret_arn

    def put(self, secrets: Secrets, labels_in_use: Callable[[], set[str]]) -> None:
        """See to it that there is a version with these values and their label; one call when there is.

        Args:
            secrets: The values.
            labels_in_use: The labels that unfinished runs depend on; asked for only when there is no room for one more.

        Raises:
            ConfigurationError: All labels that the secret may have are in use.
        """
        versions = self._stages()
        if secrets.label in versions.get(secrets.version_id, ()):
            return
        labels = {label for found in versions.values() for label in found}
        if secrets.label in labels:
            raise ConfigurationError(
                f"The secret's label {secrets.label} is taken by other values.", "Make a new W&B key, and log in again."
            )
        if len(labels) >= _MAX_LABELS:
            self._make_room(labels_in_use)
        reply = self._client.put_secret_value(
            SecretId=self._arn,
            ClientRequestToken=secrets.version_id,
            SecretString=secrets.text,
            VersionStages=[secrets.label],
        )
        if secrets.label not in reply["VersionStages"]:  # there already, from when its label had to go
            self._give(secrets.label, secrets.version_id)

    def labels(self) -> set[str]:
        """Return all labels that :meth:`put` has given."""
        return set(self._holders())

    def remove(self, labels: Iterable[str], labels_in_use: Callable[[], set[str]]) -> set[str]:
        """Take labels from the versions that have them: no new job can read those by them.

        A label that has come into use meanwhile is given back. Who needs one announces that in the ledger first, then
        looks whether it is there, and puts it where it is not (:meth:`put`). So when he has seen it there before it was
        taken, his announcement is in the ledger when that is asked afterwards, here; and when he announces later than
        that, he looks later still, and puts it himself. A job that starts in the moment between fails, and says why.

        AWS deletes a version without labels in its own time, but the first version of a secret keeps AWSCURRENT.
        Source: AWS Secrets Manager User Guide, "What's in a Secrets Manager secret?".

        Args:
            labels: Which nobody needed just now.
            labels_in_use: The labels that unfinished runs depend on, by the ledger as it is when this is called.

        Returns:
            Those that are gone.
        """
        holders = self._holders()
        taken = {label: holders[label] for label in labels if label in holders}
        if not taken:
            return set()
        back: set[str] = set()
        try:
            for label, version in taken.items():
                self._take(label, version)
        finally:  # also when it is broken off: what was taken by then may be in use
            back = labels_in_use() & taken.keys()
            for label in back:
                self._give(label, taken[label])
        return taken.keys() - back

    def _make_room(self, labels_in_use: Callable[[], set[str]]) -> None:
        """Take the label from the oldest version that no unfinished run depends on."""
        in_use = labels_in_use()
        for version in sorted(self._versions(), key=lambda version: version["CreatedDate"]):
            for label in version.get("VersionStages", ()):
                if label.startswith(_LABEL_PREFIX) and label not in in_use and self.remove([label], labels_in_use):
                    return
        raise ConfigurationError(
            f"The stack's secret has no room for another key: unfinished runs use all of its {_MAX_LABELS} labels.",
            "Wait until some sweeps have ended and look at them with `submitter status NAME`, which notes that.",
        )

    def _stages(self) -> Mapping[str, Sequence[str]]:
        """Return the labels of each version that has any, by its id."""
        return self._client.describe_secret(SecretId=self._arn).get("VersionIdsToStages", {})

    def _holders(self) -> dict[str, str]:
        """Return the id of the version that has each label of :meth:`put`."""
        found = self._stages().items()
        return {label: version for version, labels in found for label in labels if label.startswith(_LABEL_PREFIX)}

    def _take(self, label: str, version: str) -> None:
        """Take a label from a version, if it has it.

        Where AWS's answer was lost, botocore asks again, and AWS refuses to take what is not there any more.
        """
        try:
            self._client.update_secret_version_stage(
                SecretId=self._arn, VersionStage=label, RemoveFromVersionId=version
            )
        except self._client.exceptions.InvalidParameterException:
            if label in self._stages().get(version, ()):
                raise

    def _give(self, label: str, version: str) -> None:
        """Give a label that no version has to one, if it does not have it by now."""
        try:
            self._client.update_secret_version_stage(SecretId=self._arn, VersionStage=label, MoveToVersionId=version)
        except self._client.exceptions.InvalidParameterException:
            if label not in self._stages().get(version, ()):
                raise

    def _versions(self) -> "Iterator[SecretVersionsListEntryTypeDef]":
        from submitter.session import pages  # noqa: PLC0415 - as above

        for page in pages(self._client.list_secret_version_ids, {"NextToken": "NextToken"}, SecretId=self._arn):
            yield from page["Versions"]


def labels_of(references: Mapping[str, str]) -> set[str]:
    """Return the labels that a job definition's secrets refer to."""
    return {parts[8] for value in references.values() if len(parts := value.split(":")) > 8}
