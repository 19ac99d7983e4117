"""What is a text for everybody who gets it: the terminal, AWS, and a program in a container. Pure."""


def is_text(value: str) -> bool:
    """Tell whether a value is valid Unicode, as bytes that are no UTF-8 are not, and without NUL."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in value
