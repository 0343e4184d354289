"""The colours of the page: each sign's text can be read on its own colour, in the light and in the dark."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Final

from auditor.reports.page import signs

STYLE: Final = files("auditor.reports.page").joinpath("templates", "style.css").read_text(encoding="utf-8")
LEAST: Final = 4.5
"""The least contrast of normal text (Web Content Accessibility Guidelines 2.2, success criterion 1.4.3)."""
SIGNS: Final = sorted({*signs.BY_VERDICT, signs.INTENDED.name, signs.VANISHED.name})
THEMES: Final = {
    "light": r"\A:root\{(?P<body>[^}]*)\}",
    "dark by choice": r":root\[data-theme=dark\]\{(?P<body>[^}]*--bg[^}]*)\}",
    "dark by system": r"prefers-color-scheme:dark\)\{\s*:root:not\(\[data-theme=light\]\)\{(?P<body>[^}]*)\}",
}


def colours(theme: str) -> dict[str, str]:
    """The variables of a theme by their names, such as `dormant-ink`."""
    found = re.search(THEMES[theme], STYLE)
    assert found is not None
    return dict(re.findall(r"--([a-z-]+):(#[0-9a-f]+)", found["body"]))


def luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * one for one in colour[1:4])
    parts = (int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4))
    red, green, blue = (one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_the_text_of_each_sign_can_be_read_on_a_colour_of_its_own() -> None:
    for theme in THEMES:
        found = colours(theme)
        assert len({found[name] for name in SIGNS}) == len(SIGNS), theme
        unreadable = [name for name in SIGNS if contrast(found[name], found[f"{name}-ink"]) < LEAST]
        assert not unreadable, (theme, unreadable)
    for name in SIGNS:
        assert f".v-{name}{{fill:var(--{name});" in STYLE
        assert f".on-{name}{{fill:var(--{name}-ink);" in STYLE
