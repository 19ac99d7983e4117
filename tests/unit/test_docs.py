"""The documentation that is made from the code, or describes it key by key."""

from tools.cli_reference import PAGE, reference


def test_the_page_of_the_command_line_is_what_the_commands_say() -> None:
    assert PAGE.read_text() == reference(), "run `python -m tools.cli_reference`"
