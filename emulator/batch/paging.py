"""Pages of sorted keys: a token says after which key the next page begins, so that a deletion skips nothing."""

import base64
import binascii
from collections.abc import Iterable

from emulator.batch.refusals import plainly_refused

_LARGEST_PAGE = 100


def page(keys: Iterable[str], max_results: int | None, next_token: str | None) -> tuple[list[str], dict[str, str]]:
    """Cut one page out of the keys, in their sorted order.

    Args:
        keys: The keys of everything there is.
        max_results: Size of a page, 1 to 100; None means 100.
        next_token: What the page before came with.

    Returns:
        The page's keys, and the member `nextToken` of the reply when there is more.

    Raises:
        ApiError: The size is out of range, or the token is none of ours.
    """
    size = _LARGEST_PAGE if max_results is None else max_results
    if not 1 <= size <= _LARGEST_PAGE:
        raise plainly_refused(f"maxResults must be between 1 and {_LARGEST_PAGE}.")
    after = "" if next_token is None else _key(next_token)
    rest = sorted(key for key in keys if key > after)
    more = {"nextToken": base64.urlsafe_b64encode(rest[size - 1].encode()).decode()} if len(rest) > size else {}
    return rest[:size], more


def _key(token: str) -> str:
    try:
        return base64.b64decode(token, altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise plainly_refused("The specified nextToken is invalid.") from None
