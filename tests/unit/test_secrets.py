"""Values that only jobs may see: where they come from, how they are referred to, and that they do not show."""

import pytest

from submitter.errors import UsageError
from submitter.secrets import Secrets, collect, labels_of

ARN = "arn:aws:secretsmanager:us-east-1:123456789012:secret:keys-AbCdEf"


def test_values_come_from_the_variables_of_their_names() -> None:
    secrets = collect(["HF_TOKEN"], {"HF_TOKEN": "token", "OTHER": "x"}, wandb_key="key")
    assert secrets.reveal() == {"HF_TOKEN": "token", "WANDB_API_KEY": "key"}
    assert not collect([], {}, wandb_key=None)


def test_a_name_without_a_value_is_refused() -> None:
    with pytest.raises(UsageError, match="HF_TOKEN names a variable that is not set"):
        collect(["HF_TOKEN"], {}, wandb_key=None)


def test_values_do_not_show() -> None:
    secrets = Secrets({"HF_TOKEN": "sentinel"})
    assert "sentinel" not in f"{secrets!r} {secrets} {secrets.references(ARN)}"


@pytest.mark.parametrize("text", ["python train.py --token sentinel-1", "sentinel-1", "https://u:sentinel-1@host"])
def test_a_value_in_what_everybody_reads_is_refused_by_its_name(text: str) -> None:
    with pytest.raises(UsageError, match="The value of HF_TOKEN is in the command") as refused:
        Secrets({"HF_TOKEN": "sentinel-1"}).check_hidden(["python", text])
    assert "sentinel" not in f"{refused.value.message} {refused.value.remedy}"
    Secrets({"HF_TOKEN": "sentinel-1", "MODE": "python"}).check_hidden(["python train.py", "sentinel-2"])


def test_a_definition_refers_to_a_label_that_is_made_of_the_values() -> None:
    secrets = Secrets({"B": "2", "A": "1"})
    same, other = Secrets({"A": "1", "B": "2"}), Secrets({"A": "1", "B": "3"})
    assert secrets.references(ARN) == {name: f"{ARN}:{name}:{secrets.label}:" for name in ("A", "B")}
    assert secrets.label == same.label != other.label
    assert 32 <= len(secrets.version_id) <= 64, "what Secrets Manager takes for a ClientRequestToken"
    assert labels_of(secrets.references(ARN)) == {secrets.label}
    assert labels_of({"WHOLE": ARN}) == set()
