import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from submitter.errors import UsageError
from submitter.shelltext import read
from submitter.template import ArgStyle, Template


def rendered(command: str, axes: tuple[str, ...] = (), row: tuple[str, ...] = (), *, style: ArgStyle = "flag") -> str:
    return Template.parse(command, axes, arg_style=style).render(row, 3)


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("python t.py", "python t.py --seed 3"),
        ("python t.py\n", "python t.py --seed 3"),
        ("python t.py\r\n", "python t.py --seed 3"),
        ("\npython t.py\n\n", "\npython t.py --seed 3"),
        ("cd x && python t.py", "cd x && python t.py --seed 3"),
        ("export A=1; python t.py", "export A=1; python t.py --seed 3"),
        ("python t.py \\\n  --lr 1", "python t.py \\\n  --lr 1 --seed 3"),
        ("python -c 'a\nb'", "python -c 'a\nb' --seed 3"),
        ("python t.py > log 2>&1", "python t.py > log 2>&1 --seed 3"),
        ("python t.py &> log", "python t.py &> log --seed 3"),
        ("python t.py >| log", "python t.py >| log --seed 3"),
        ("python t.py $(cat 'a|b' # c\n)", "python t.py $(cat 'a|b' # c\n) --seed 3"),
        ("python t.py <(a) <<< 'x'", "python t.py <(a) <<< 'x' --seed 3"),
        ("python t.py $((2*(1<<2)))", "python t.py $((2*(1<<2))) --seed 3"),
        ("python t.py ${X:-\"}\"} `a 'b|'`", "python t.py ${X:-\"}\"} `a 'b|'` --seed 3"),
        ("python t.py --color=#f00 'a # b'", "python t.py --color=#f00 'a # b' --seed 3"),
        ('python t.py "a | $(b | "c") `d`" $\'it\\\'s |\'', 'python t.py "a | $(b | "c") `d`" $\'it\\\'s |\' --seed 3'),
        ("python t.py --eval-seed 7", "python t.py --eval-seed 7 --seed 3"),
        ('f() { python t.py "$@"; }; f', 'f() { python t.py "$@"; }; f --seed 3'),
    ],
)
def test_the_seed_is_added_at_the_end_where_it_reaches_the_last_command(command: str, text: str) -> None:
    assert rendered(command) == text


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("a | tee log", "|"),
        ("a || b", "|"),
        ("a |& b", "|"),
        ("a # the best", "comment"),
        ("# only", "comment"),
        ("a &", "background"),
        ("a & wait", "background"),
        ("a\nb", "several lines"),
        ("a;\n\nb\n", "several lines"),
        ("(a)", r"ends in \)"),
        ("(a) ", r"ends in \)"),
        ("(a", "parenthesis"),
        ("a (b) c", "after a word"),
        ("a ) c", "without its"),
        ("for i in 1 2; do a; done", "ends in done"),
        ("if a; then b; fi", "ends in fi"),
        ("case a in a) b;; esac", "without its"),
        ("case a in (a) b;; esac", "after a word"),
        ("{ a; }", "ends in }"),
        ("a;", "operator"),
        ("a &&", "operator"),
        ("a >", "redirection"),
        ("a \\", "backslash"),
        ("a 'b", "quote"),
        ('a "b', "quote"),
        ("a $'b", "quote"),
        ("a `b", "backquote"),
        ("a $(b", r"\$\("),
        ("a ${b", r"\${"),
        ("a $((1", r"\$\(\("),
        ("a <<EOF\nx\nEOF", "here-document"),
        ("a <<-'E F'\nx\n\tE F\n", "here-document"),
        ("a <<EOF", "here-document"),
        ("a <<EOF\nx", "here-document"),
        ("bash -lc 'python t.py'", "bash -lc"),
        ("/bin/sh -c 'python t.py'", "sh -c"),
    ],
)
def test_adding_is_refused_where_it_would_go_astray_and_naming_the_seed_helps(command: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason) as refusal:
        rendered(command)
    assert refusal.value.remedy == "Write {seed} where it belongs in the command."
    assert rendered(f"echo {{seed}}; {command}") == f"echo 3; {command}"


@pytest.mark.parametrize(
    "command",
    [
        'x {a:{b:1}} \'{"a":{"b":2}}\' {} {{x}} ${seed} ${env-id} {1..3} {seed,2} {{ jinja }} {env_id}',
        "python t.py 'model={layers:[1,2]}' +x='{y}' }{ \\{",
    ],
)
def test_braces_that_name_no_value_stay_byte_for_byte(command: str) -> None:
    assert rendered(f"{command} {{seed}} {{env-id}}\n", ("env-id",), ("A",)) == f"{command} 3 A\n"


def test_double_braces_stand_for_a_literal_name() -> None:
    assert rendered("echo {{seed}} {{env-id}} {seed}", ("env-id",), ("A",)) == "echo {seed} {env-id} 3 --env-id A"


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("echo {{seed},{v}}", "echo {3,x}"),
        ("echo '{\"s\": {{seed}, 3}}'", "echo '{\"s\": {3, 3}}'"),
    ],
)
def test_a_brace_before_a_place_is_itself(command: str, text: str) -> None:
    assert rendered(f"{command} {{v}} {{seed}}", ("v",), ("x",)) == f"{text} x 3"


@pytest.mark.parametrize("seed", [str(2**63), str(2**64 - 1), "9" * 5000])
@pytest.mark.parametrize(("style", "option"), [("flag", "--seed "), ("flag", "--seed="), ("hydra", "seed=")])
def test_an_own_seed_that_no_shell_can_hold_is_refused(seed: str, style: ArgStyle, option: str) -> None:
    with pytest.raises(UsageError, match="is too large"):
        Template.parse(f"t {option}{seed}", (), arg_style=style)


def test_the_users_text_keeps_its_blanks_quotes_and_dollars() -> None:
    text = "echo 'a  b' \"$HOME\" && python -c 'print(\"e\")' {seed}\n"
    assert rendered(text) == text.replace("{seed}", "3")
    without = text.replace(" {seed}", "")
    assert rendered(without) == without.rstrip("\n") + " --seed 3"


@pytest.mark.parametrize(
    ("style", "expected"),
    [
        ("flag", "t --env-id A --lr '1 2' --seed 3"),
        ("equals", "t --env-id=A --lr='1 2' --seed=3"),
        ("hydra", "t env-id=A lr='1 2' seed=3"),
    ],
)
def test_axes_are_added_in_the_style_asked_for_with_the_seed_last(style: ArgStyle, expected: str) -> None:
    assert rendered("t", ("env-id", "lr"), ("A", "1 2"), style=style) == expected


def test_only_what_the_command_does_not_name_is_added() -> None:
    assert rendered("t --env {env-id}", ("env-id", "lr"), ("A", "1")) == "t --env A --lr 1 --seed 3"


def test_values_are_quoted_for_the_place_where_they_stand() -> None:
    text = rendered('t {v} \'{v}\' "{v}" $({v} "{v}") --x={v} {seed}', ("v",), ("a'b $c",))
    plain = "'a'\"'\"'b $c'"
    assert text == f"t {plain} 'a'\\''b $c' \"a'b \\$c\" $({plain} \"a'b \\$c\") --x={plain} 3"


@pytest.mark.parametrize(
    "command", ["t `{v}`", "t $'{v}'", "t # {v}", "t $(({v}))", "t ${x:-{v}}", "t <<E\n{v}\nE", "t \\{v}", 't "\\{v}"']
)
def test_where_nothing_can_be_quoted_only_plain_values_can_stand(command: str) -> None:
    template = Template.parse(f"echo {{seed}}; {command}", ("v",))
    assert template.render(("plain-1.5",), 3) == f"echo 3; {command.replace('{v}', 'plain-1.5')}"
    with pytest.raises(UsageError, match="cannot be written"):
        template.render(("a b",), 3)


@pytest.mark.parametrize(
    "command", ["t --seed 7", "t --seed=7", "t --seed '7'", "t --seed 7 | tee log", "t --x {seed} --seed 7"]
)
def test_a_command_with_its_own_seed_is_one_run_with_it(command: str) -> None:
    template = Template.parse(command, ())
    assert template.own_seed == 7
    assert template.seeds(None) == (7,)
    assert template.render((), 7) == command.replace("{seed}", "7")
    with pytest.raises(UsageError, match="its own seed, 7"):
        template.seeds((1, 2))


@pytest.mark.parametrize(
    "command", ["t --eval-seed 7", "t --seeds 7", "t '--seed 7'", "t --seed {seed}", "t --seed={seed}", "t"]
)
def test_what_is_not_the_seed_option_leaves_the_seeds_to_the_options(command: str) -> None:
    template = Template.parse(command, ())
    assert template.own_seed is None
    assert template.seeds(None) == (1,)
    assert template.seeds((4, 5)) == (4, 5)


@pytest.mark.parametrize("command", ["t --seed $S", "t --seed", "t --seed 1 --seed 2", "t --seed=1 --seed 1"])
def test_a_seed_of_its_own_that_is_no_one_number_is_refused(command: str) -> None:
    with pytest.raises(UsageError, match="--seed"):
        Template.parse(command, ())


def test_the_seed_option_can_have_another_name() -> None:
    assert Template.parse("t --seed 7", (), seed_flag="--random-seed").render((), 3) == "t --seed 7 --random-seed 3"
    assert Template.parse("t --random-seed 7", (), seed_flag="--random-seed").own_seed == 7
    assert Template.parse("t seed=7", (), arg_style="hydra").own_seed == 7
    assert Template.parse("seed=7 t", ()).own_seed is None


def test_runs_without_a_seed_get_none() -> None:
    assert Template.parse("t | u --seed 1", (), seed_flag=None).render((), None) == "t | u --seed 1"
    with pytest.raises(UsageError, match="have no seed"):
        Template.parse("t {seed}", (), seed_flag=None)


@pytest.mark.parametrize("command", ["", " \n", "--total-timesteps 5", "a\0b"])
def test_what_is_no_command_is_refused(command: str) -> None:
    with pytest.raises(UsageError):
        Template.parse(command, ())


@settings(max_examples=100, derandomize=True, deadline=None)
@given(st.text(st.sampled_from("a1 \t\n'\"\\$`(){}<>|&;#E-=")))
def test_every_text_can_be_read(text: str) -> None:
    shell = read(text)
    assert len(shell.contexts) == len(text)
