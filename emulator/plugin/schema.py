"""What an input of a resource type is, and everything that follows from it alone.

Checking, comparing and projecting need the inputs' declarations and plain values, never AWS. Values are what JSON has;
a value that is not known yet in a preview is the string :data:`UNKNOWN`. As in Terraform's SDK, on which the real
plugin is built, an unset value and an empty one (`""`, `0`, `false`, an empty list or map) are the same.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

UNKNOWN: Final = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"

Values = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Input:
    """One input of a resource type.

    Attributes:
        required: Whether Check refuses a resource without it.
        default: What Check puts in its place when it is absent.
        force_new: Whether another value takes another resource. On a block with `fields`: whether its appearing,
            disappearing or changing in number does; what is in it has flags of its own.
        computed: Whether AWS fills it in when it is absent, so that taking it out of the program changes nothing.
        unordered: Whether it is a list whose order means nothing.
        document: Whether it is text that holds a JSON document, whose layout means nothing.
        remembered: Whether AWS never tells it, so that a refresh keeps what the program said.
        choices: The only values that are served, if not all are.
        fields: Declarations of what is in it, for a block or a list of blocks.
    """

    required: bool = False
    default: Any = None
    force_new: bool = False
    computed: bool = False
    unordered: bool = False
    document: bool = False
    remembered: bool = False
    choices: tuple[Any, ...] = ()
    fields: Mapping[str, "Input"] | None = None


Fields = Mapping[str, Input]


@dataclass(frozen=True)
class Difference:
    """One property that differs; `kind` is `add`, `delete` or `update`, `names` the path without list indices."""

    path: str
    names: tuple[str, ...]
    kind: str
    force_new: bool


def has_unknown(value: Any) -> bool:
    """Return whether anything in `value` is not known yet."""
    if isinstance(value, dict):
        return any(map(has_unknown, value.values()))
    if isinstance(value, list):
        return any(map(has_unknown, value))
    return bool(value == UNKNOWN)


def blocks(value: Any) -> list[Values]:
    """Return the block or the blocks that `value` is."""
    return [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, dict)]


def with_defaults(fields: Fields, values: Values) -> Values:
    """Return `values` with the defaults of what is absent, in blocks too."""
    result = dict(values)
    for name, field in fields.items():
        if name not in result:
            if field.default is not None:
                result[name] = field.default
        elif field.fields and isinstance(result[name], list):
            result[name] = [with_defaults(field.fields, v) if isinstance(v, dict) else v for v in result[name]]
        elif field.fields and isinstance(result[name], dict):
            result[name] = with_defaults(field.fields, result[name])
    return result


def failures(fields: Fields, values: Values, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield (property, reason) for whatever cannot be served: unknown names, absent required ones, other choices."""
    for name in values.keys() - fields.keys():
        yield f"{path}{name}", f"the stand-in AWS plugin does not serve the property {path}{name}"
    for name, field in fields.items():
        value = values.get(name)
        if value is None:
            if field.required:
                yield f"{path}{name}", f"the required property {path}{name} is missing"
        elif field.choices and value != UNKNOWN and value not in field.choices:
            served = ", ".join(map(str, field.choices))
            yield f"{path}{name}", f"the stand-in AWS plugin serves {path}{name} only as {served}, not as {value}"
        elif field.fields:
            for block in blocks(value):
                yield from failures(field.fields, block, f"{path}{name}.")


def differences(fields: Fields, old: Values, new: Values) -> list[Difference]:
    """Return every difference between two sets of inputs, as deep as the declarations go."""
    found: list[Difference] = []
    for name in sorted(old.keys() | new.keys()):
        found += _compare(fields.get(name, Input()), name, (name,), old.get(name), new.get(name))
    return found


def _compare(field: Input, path: str, names: tuple[str, ...], old: Any, new: Any) -> Iterator[Difference]:
    if same(field, old, new) or (field.computed and new is None):
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            inner = (field.fields or {}).get(key, Input(force_new=field.force_new and not field.fields))
            step = f".{key}" if key.isidentifier() else f"[{json.dumps(key)}]"
            yield from _compare(inner, path + step, (*names, key), old.get(key), new.get(key))
    elif _pairs(field, old, new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from _compare(Input(fields=field.fields), f"{path}[{index}]", names, before, after)
    else:
        kind = "add" if _empty(old) else "delete" if _empty(new) else "update"
        yield Difference(path, names, kind, field.force_new)


def _pairs(field: Input, old: Any, new: Any) -> bool:
    """Return whether two values are lists of blocks that can be compared one by one."""
    lists = isinstance(old, list) and isinstance(new, list) and len(old) == len(new)
    return bool(lists and field.fields and not field.unordered)


def same(field: Input, one: Any, other: Any) -> bool:
    """Return whether two values of an input mean the same."""
    return bool(canonical(field, one) == canonical(field, other))


def canonical(field: Input, value: Any) -> Any:
    """Return a value in the one form that all values of the same meaning share."""
    if _empty(value):
        return None
    if field.document and isinstance(value, str) and value != UNKNOWN:
        try:
            return json.loads(value)
        except ValueError:
            return value
    if isinstance(value, dict):
        inner = {key: canonical((field.fields or {}).get(key, Input()), item) for key, item in value.items()}
        return inner if field.fields is None else {key: item for key, item in inner.items() if item is not None}
    if isinstance(value, list):
        items = [canonical(Input(fields=field.fields), item) for item in value]
        return sorted(items, key=_sort_key) if field.unordered else items
    return value


def _sort_key(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _empty(value: Any) -> bool:
    return value is None or value in ("", 0, [], {})


def observed(fields: Fields, inputs: Values, live: Values) -> Values:
    """Return `inputs` as the account has them: a refresh's new inputs.

    Only what the program has said is looked at, in blocks too, because whatever else AWS fills in would show as a
    difference for ever. What means the same keeps the program's spelling and order.
    """
    result: Values = {}
    for name, value in inputs.items():
        field = fields.get(name, Input(remembered=True))
        seen = value if field.remembered or same(field, value, live.get(name)) else _seen(field, value, live.get(name))
        if seen is not None:
            result[name] = seen
    return result


def _seen(field: Input, value: Any, live: Any) -> Any:
    if field.fields and isinstance(value, dict) and isinstance(live, dict):
        return observed(field.fields, value, live)
    if field.fields and field.unordered and isinstance(value, list) and isinstance(live, list):
        # Blocks that are still there keep their spelling, the others follow.
        element = Input(fields=field.fields)
        kept = [old for old in value if any(same(element, old, item) for item in live)]
        return kept + [pruned(element, item) for item in live if not any(same(element, old, item) for old in kept)]
    if field.fields and _pairs(field, value, live):
        return [_seen(Input(fields=field.fields), old, item) for old, item in zip(value, live, strict=True)]
    return pruned(field, live)


def pruned(field: Input, live: Any) -> Any:
    """Return a value that AWS gave without what is empty and, in blocks, what is not declared; None if empty."""
    if _empty(live):
        return None
    if field.fields and isinstance(live, dict):
        inner = {name: pruned(item, live.get(name)) for name, item in field.fields.items()}
        return {name: item for name, item in inner.items() if item is not None}
    if isinstance(live, list):
        items = [pruned(Input(fields=field.fields), item) for item in live] if field.fields else live
        return sorted(items, key=_sort_key) if field.unordered else items
    return live
