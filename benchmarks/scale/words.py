"""Numbers of a night as words of a page."""

from __future__ import annotations

import math
from typing import Final

_TENS: Final = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def power(objects: int) -> str:
    """Return a power of ten as such, another number with commas: `10⁹`."""
    exponent = len(str(objects)) - 1
    return f"10{str(exponent).translate(_TENS)}" if objects == 10**exponent else f"{objects:,}"


def rounded(objects: int | None) -> str:
    """Return a number of objects with two digits: `3.1 million`."""
    if objects is None:
        return "none up to 10¹²"
    for size, name in ((10**9, " billion"), (10**6, " million"), (10**3, ",000")):
        if objects >= size:
            value = float(f"{objects / size:.2g}")
            return f"{value:,.1f}{name}" if value < 10 and size > 1000 and value % 1 else f"{value:,.0f}{name}"
    return str(objects)


def dollars(amount: float) -> str:
    """Return dollars, with cents below a hundred: `$7.50`."""
    if math.isinf(amount):
        return "-"
    if amount >= 100:
        return f"${amount:,.0f}"
    return f"${amount:.2f}" if amount >= 0.005 or not amount else "below $0.01"


def duration(seconds: float) -> str:
    """Return seconds in their unit: `17 min`, `2.8 h`, `11.6 days`."""
    if math.isinf(seconds):
        return "never"
    if seconds < 60:
        return f"{math.ceil(seconds)} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 48 * 3600 else f"{seconds / 86400:.1f} days"


def counted(number: float) -> str:
    """Return a number with commas, or in millions and billions above ten million."""
    if number >= 10**10:
        return f"{number / 10**9:,.0f} billion"
    if number >= 10**7:
        return f"{number / 10**6:,.0f} million"
    return f"{number:,.0f}" if number >= 10 or number == int(number) else f"{number:.2f}"


def percent(share: float) -> str:
    """Return a share as a percentage: `1 %`."""
    return f"{100 * share:.3g} %"
