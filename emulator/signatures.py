"""How long a signature of AWS's version 4 is good.

Source: "Troubleshoot Signature Version 4 signing for AWS API requests", IAM user guide.
"""

import re
from calendar import timegm
from time import gmtime, strftime, strptime

_FORMAT = "%Y%m%dT%H%M%SZ"
_LIFE_SECONDS = 300


def stale(date: str, *, now: float, offset: float) -> str | None:
    """Say in AWS's words that a signature is too old or too far ahead; None when it is good, or has no date.

    Args:
        date: The request's X-Amz-Date.
        now: The account's time, in epoch seconds.
        offset: By how much the account's clock was ahead of real time when the request arrived. A client can not know
            of it, so its own clock is taken to have gone on by as much; what the clock is advanced by while the request
            is held up does count.
    """
    if not re.fullmatch(r"\d{8}T\d{6}Z", date):
        return None
    signed = timegm(strptime(date, _FORMAT)) + offset
    if signed < now - _LIFE_SECONDS:
        limit = now - _LIFE_SECONDS
        return f"Signature expired: {_amz(signed)} is now earlier than {_amz(limit)} ({_amz(now)} - 5 min.)"
    if signed > now + _LIFE_SECONDS:
        limit = now + _LIFE_SECONDS
        return f"Signature not yet current: {_amz(signed)} is still later than {_amz(limit)} ({_amz(now)} + 5 min.)"
    return None


def _amz(time: float) -> str:
    return strftime(_FORMAT, gmtime(time))
