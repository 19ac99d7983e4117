"""The command of a container: a few lines of shell that pick their run from a compact table and start it.

One container command serves all jobs of an array, since they differ in AWS_BATCH_JOB_ARRAY_INDEX only. It uses nothing
but a POSIX shell's own words, so that it runs in every image that has a shell.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Final

from submitter.numbers import NumberSet, range_text
from submitter.sweep import Block, Runs
from submitter.template import SEED, Blank, Template, quoted

# Arguments: 1 the nonce, or - for no W&B id, 2 vCPUs, 3 numbers of the runs, 4 blocks, 5 how many arguments stand
# before the pieces; then values; then the pieces of the user's text: =TEXT, or the number of a column.
# A block is last:first:column:..., for the runs numbered first to last. A column is stride.count.used.base and gives a
# run its (position / stride % count)th value. Only the values listed in `used` are sent, from the argument `base` on;
# the values of a column with base 0 are numbers, which follow as its fifth part.
# A value that is empty or begins with = has a = before it, because a container's command has no empty arguments.
_SCRIPT: Final = r"""
at() { IFS=,; _k=$2
for _r in $1; do _a=${_r%-*}; _d=$((${_r#*-}-_a))
if [ "$_k" -le "$_d" ]; then _r=$((_a+_k)); return; fi
_k=$((_k-_d-1)); done
echo "submitter: this array has no index $2" >&2; exit 64; }
rank() { IFS=,; _k=0
for _r in $1; do _a=${_r%-*}; _d=${_r#*-}
if [ "$2" -le "$_d" ]; then _r=$((_k+$2-_a)); return; fi
_k=$((_k+_d-_a+1)); done; }
column() { rank "$3" $((_p/$1%$2)); _j=$4
if [ "$_j" = 0 ]; then at "$5" "$_r"; else _j=$((_j+_r)); fi; }
at "$3" "${AWS_BATCH_JOB_ARRAY_INDEX:-0}"; _n=$_r
IFS=' '; for _b in $4; do if [ "$_n" -le "${_b%%:*}" ]; then break; fi; done
_b=${_b#*:}; _p=$((_n-${_b%%:*})); _i=0; IFS=:
for _c in $_b; do
case $_c in *.*) IFS=.; column $_c
if [ "$_j" = 0 ]; then eval "_v$_i=$_r"; else eval "_v$_i=\${$_j#=}"; fi; _i=$((_i+1));; esac; done
if [ -n "${SUBMITTER_ARTIFACTS-}" ]; then export SUBMITTER_ARTIFACTS="$SUBMITTER_ARTIFACTS-$_n"; fi
case ${SUBMITTER_WANDB_RETRY-} in new*) _n=$_n${SUBMITTER_WANDB_RETRY#new}
if [ "${AWS_BATCH_JOB_ATTEMPT:-1}" != 1 ]; then _n=$_n-$AWS_BATCH_JOB_ATTEMPT; fi;; esac
if [ "$1" != - ]; then export WANDB_RUN_ID="$1-$_n" WANDB_RESUME="${WANDB_RESUME-allow}"; fi
export OMP_NUM_THREADS="${OMP_NUM_THREADS-$2}" MKL_NUM_THREADS="${MKL_NUM_THREADS-$2}"
shift "$5"; _t=
for _c do case $_c in =*) _t=$_t${_c#=};; *) eval "_t=\$_t\$_v$_c";; esac; done
if command -v bash >/dev/null 2>&1; then exec bash -c "$_t"; fi
exec sh -c "$_t"
""".strip()

_HEADER: Final = 5

ARTIFACTS: Final = "SUBMITTER_ARTIFACTS"
"""The variable with a run's place for files; a job's is the beginning that its runs have in common, up to a dash."""

WANDB_RETRY: Final = "SUBMITTER_WANDB_RETRY"
"""The variable that gives each later attempt a W&B id of its own: :data:`WANDB_RETRY_NEW` and what a retry adds."""

WANDB_RETRY_NEW: Final = "new"


def wrapper_argv(template: Template, nonce: str, runs: Runs, *, vcpus: int) -> list[str]:
    """Return the container command for these runs; a job of an array takes the one at its index, a plain job the first.

    The user's text gets its values as :meth:`Template.render` puts them, and in its environment WANDB_RUN_ID
    (`<nonce>-<number>`), and unless they are set WANDB_RESUME (`allow`) and OMP_NUM_THREADS and MKL_NUM_THREADS
    (the vCPUs: a job sees all cores of its host, whatever its share of them is). Runs without a seed get no W&B id,
    since an agent of W&B makes many runs. What :data:`ARTIFACTS` begins with is completed for the run, and where
    :data:`WANDB_RETRY` is set, later attempts have `-2`, `-3`, ... at the end of their W&B id. The text runs under bash
    if the image has that, else under sh. Arguments are never empty, since AWS Batch does not take empty ones.

    Raises:
        UsageError: A value cannot be quoted where the command names it.
    """
    arguments = _Arguments(template)
    blocks = " ".join([arguments.block(used) for used in _used_blocks(runs)])
    wandb = "-" if template.seedless else nonce
    header = [wandb, str(vcpus), str(runs.numbers), blocks, str(_HEADER + len(arguments.values))]
    return ["/bin/sh", "-c", _SCRIPT, "submitter", *header, *arguments.values, *arguments.pieces]


@dataclass(frozen=True)
class _UsedBlock:
    """A block of the table with the positions of those of its runs that are in the array, None for all of them."""

    first: int
    block: Block
    positions: Sequence[int] | None

    def used(self, stride: int, count: int) -> NumberSet:
        """Return which values the runs use of a column that changes every `stride` runs and has `count` values."""
        if self.positions is None:
            return NumberSet(range(count))
        return NumberSet(position // stride % count for position in self.positions)


def _used_blocks(runs: Runs) -> Iterator[_UsedBlock]:
    table, numbers = runs.table, runs.numbers
    at = 0
    for start, block in zip(table.starts, table.blocks, strict=False):
        end = numbers.count_to(start + len(block))
        if end - at == len(block):
            yield _UsedBlock(start + 1, block, None)
        elif end > at:
            yield _UsedBlock(start + 1, block, [numbers[index] - start - 1 for index in range(at, end)])
        at = end


@dataclass
class _Arguments:
    """Collects the values of an array's arguments, each list of them once."""

    template: Template
    values: list[str] = field(default_factory=list)
    bases: dict[tuple[str, ...], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        blanks = [piece for piece in self.template.pieces if isinstance(piece, Blank)]
        # A seed is made of digits, which mean themselves in every context: it needs one column only.
        columns = [blank._replace(context=blanks[0].context) if blank.name == SEED else blank for blank in blanks]
        self.columns = list(dict.fromkeys(columns))
        found = iter(columns)
        self.pieces = [
            f"={piece}" if isinstance(piece, str) else str(self.columns.index(next(found)))
            for piece in self.template.pieces
        ]

    def block(self, used: _UsedBlock) -> str:
        """Return the description of a block for the script, having put its values among the arguments."""
        last = used.first + len(used.block) - 1
        columns = (self.column(blank, used) for blank in self.columns)
        return ":".join([str(last), str(used.first), *columns])

    def column(self, blank: Blank, used: _UsedBlock) -> str:
        block = used.block
        stride = prod(map(len, block.factors))
        if blank.name == SEED:
            count = len(block.seeds)
            choices = dict.fromkeys((NumberSet(range(count)), used.used(stride, count)))
            return min((f"{stride}.{count}.{chosen}.0.{_seeds(block, chosen)}" for chosen in choices), key=len)
        place = self.template.axes.index(blank.name)
        for factor in block.factors:
            stride //= len(factor)
            if place < len(factor[0]):
                chosen = used.used(stride, len(factor))
                base = self.base(tuple(quoted(blank, factor[index][place]) for index in chosen))
                return f"{stride}.{len(factor)}.{chosen}.{base}"
            place -= len(factor[0])
        raise IndexError(blank.name)

    def base(self, values: tuple[str, ...]) -> int:
        """Return the number of the first of the arguments that hold these values, adding them if they are new."""
        if values not in self.bases:
            self.bases[values] = _HEADER + len(self.values) + 1
            self.values += (f"={value}" if not value or value.startswith("=") else value for value in values)
        return self.bases[values]


def _seeds(block: Block, chosen: NumberSet) -> str:
    return range_text(seed for index in chosen if (seed := block.seeds[index]) is not None)
