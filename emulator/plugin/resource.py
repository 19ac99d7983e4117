"""What a resource type is to the protocol."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from emulator.plugin.aws import Aws, error_code
from emulator.plugin.schema import Difference, Fields, Input, Values

TAGS: Final = Input()


class ResourceType:
    """One resource type: its properties, and how AWS makes, reads, changes and deletes it.

    A subclass declares; it keeps no state. `inputs` and `outputs` together are the properties of the class of the
    same type in `pulumi_aws`. Which inputs force a new resource is taken from the schema of the Terraform provider
    that the real plugin wraps, at the place that `source` names.

    Attributes:
        type_name: Pulumi's type token.
        source: File of hashicorp/terraform-provider-aws that declares the schema, with its commit.
        inputs: The inputs that are served.
        outputs: The properties that only AWS knows.
        name: The input that is generated when absent, if any.
        name_length: The longest name, in characters.
        gone: AWS's error codes for "there is no such thing".
        looks_again: Whether an update in which nothing changed finishes what was half made.
        timeout_seconds: How long one request may wait unless the program says otherwise.
    """

    type_name: ClassVar[str]
    source: ClassVar[str]
    inputs: ClassVar[Fields]
    outputs: ClassVar[tuple[str, ...]] = ()
    name: ClassVar[str | None] = "name"
    name_length: ClassVar[int] = 255
    gone: ClassVar[frozenset[str]] = frozenset()
    looks_again: ClassVar[bool] = True
    timeout_seconds: ClassVar[float] = 20 * 60

    def create(self, aws: Aws, inputs: Values) -> str:
        """Make the resource by one call and return its id."""
        raise NotImplementedError

    def settle(self, aws: Aws, resource_id: str, inputs: Values) -> None:
        """Do what must follow :meth:`create`; if it fails, the resource is kept in the state as half made."""

    def read(self, aws: Aws, resource_id: str) -> Values | None:
        """Return inputs and outputs as the account has them, None if there is no such resource."""
        raise NotImplementedError

    def update(self, aws: Aws, resource_id: str, old: Values, new: Values, changed: Collection[str]) -> None:
        """Change what can be changed in place, from `old`, which the account has, to `new`.

        `changed` are names of inputs, without tags; none when the resource was half made and may be well now.
        """
        raise NotImplementedError

    def retag(self, aws: Aws, resource_id: str, state: Values, add: Mapping[str, str], remove: Sequence[str]) -> None:
        """Add or overwrite tags, and remove others."""
        raise NotImplementedError

    def delete(self, aws: Aws, resource_id: str, state: Values) -> None:
        """Delete the resource; `state` is its last known inputs and outputs."""
        raise NotImplementedError

    def replaces(self, difference: Difference, old: Values, new: Values) -> bool:  # noqa: ARG002 - for subclasses
        """Return whether a difference takes a new resource."""
        return difference.force_new

    def updated_outputs(self, changed: Collection[str], new: Values) -> tuple[str, ...]:  # noqa: ARG002 - the same
        """Return the outputs that an update of these inputs changes, which a preview cannot know."""
        return ()

    def is_gone(self, error: Exception) -> bool:
        """Return whether AWS said that there is no such resource."""
        return error_code(error) in self.gone


@dataclass(frozen=True)
class Function:
    """One function (data source): the arguments that it takes, and what it answers."""

    inputs: frozenset[str]
    call: Callable[[Aws, Values], Values]


def present(values: Mapping[str, Any], **names: str) -> dict[str, Any]:
    """Return AWS's parameters of those inputs that are not empty: `present(inputs, description="Description")`."""
    return {parameter: values[name] for name, parameter in names.items() if values.get(name) not in (None, "", {}, [])}
