"""The content of a report page: what its templates print, with every count and every order ready."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from auditor.model.rollup import Group, Sample
from auditor.model.summary import Summary
from auditor.reports.page.pictures import CoverageBar, Curve, Places, Share, Spark
from auditor.reports.page.signs import Sign


class Chip(Struct, frozen=True):
    """A short fact below the headline. tone: "ok", "warn" or "". code: a text from outside, shown as code."""

    text: str
    tone: str = ""
    code: str | None = None


class Headline(Struct, frozen=True, kw_only=True):
    """The verdict on the whole run. kicker: the work, before the target's name. title: the words before the number, the
    number, and the words after it. lead: a sentence in bold, and the rest.
    """

    kicker: str
    target: str
    when: str
    title: tuple[str, str, str]
    bad: bool = False
    bold: str = ""
    lead: str = ""
    chips: tuple[Chip, ...] = ()
    notes: tuple[str, ...] = ()


class NumberCard(Struct, frozen=True):
    """One number at the top of the page. filters: True if a click shows the findings of this verdict."""

    sign: Sign
    number: int
    words: str
    spark: Spark | None = None
    filters: bool = False


class FirstChange(Struct, frozen=True):
    """One change that closes much: number of objects, and the words after it."""

    change: str
    aside: str
    number: int
    words: str


class Row(Struct, frozen=True, kw_only=True):
    """A row of a list: a group, or the small groups of one rule or verdict together, as one group with their sums.

    ids: of all these groups. prefixes: number of their prefixes. keys: the samples that the closed row shows. samples:
    further ones. remedies: IDs of rules, or "", with their fix. commands: a label, and the whole command.
    """

    group: Group
    ids: tuple[str, ...]
    prefixes: int
    keys: Sequence[Sample]
    samples: Sequence[Sample]
    remedies: Sequence[tuple[str, str]]
    facts: Sequence[tuple[str, str]]
    """Names and values beside the text."""
    commands: Sequence[tuple[str, str]]


class Tick(Struct, frozen=True):
    """A filter of the list. number: of findings."""

    name: str
    value: str
    mark: str
    number: int


class HoleRow(Struct, frozen=True):
    """A fact that could not be read. objects: None for a fact of the bucket."""

    objects: int | None
    place: str | None
    refused: str
    rules: str
    advice: str


class RuleRow(Struct, frozen=True):
    """A rule of the run and its answer. found: number of findings. undecided: why it has no answer for some."""

    id: str
    title: str
    found: int
    undecided: str
    off: bool = False


class PageData(Struct, frozen=True, kw_only=True):
    """The whole content of the page of one audit. An empty tuple or None: the page has no such section. index: relative
    address of the index page of all targets; None if there is none. banner: the sentence on top of all; "" for a run
    whose listing reached its end.
    """

    summary: Summary
    index: str | None = None
    banner: str = ""
    title: str
    headline: Headline
    cards: Sequence[NumberCard]
    first: Sequence[tuple[FirstChange, str]]
    """The changes to make first, each with its command."""
    since: str
    """The heading of the changes."""
    changes: Sequence[tuple[str, int, str, str]]
    """For each class of changes: a plus, a minus or "", the number, the words after it, and a sentence."""
    unchanged: str
    """The sentence in place of the changes, if there is nothing to compare with."""
    causes: Sequence[str]
    """Sentences on changes of the bucket or the configuration."""
    curve: Curve | None
    coverage: CoverageBar
    places: Places | None
    openings: Sequence[Row]
    """Objects that somebody else reaches, or that may be reached."""
    findings: Sequence[Row]
    ticks: Sequence[Tick]
    holes: Sequence[HoleRow]
    rules: Sequence[RuleRow]
    rules_words: str
    settings: Sequence[tuple[str, str]]
    numbers: Sequence[tuple[str, str]]


class VerifyPage(Struct, frozen=True, kw_only=True):
    """The whole content of the page of one verification. parts: the outcomes, which add up to `total`. bar: the same,
    laid out. groups: the sign, number of objects, fix, examples and command of each outcome that a person looks at.
    note: a sentence on the examples of the groups; "" if they are of the whole run.
    """

    title: str
    headline: Headline
    cards: Sequence[NumberCard]
    parts: Sequence[Share]
    bar: Sequence[Share]
    total: int
    groups: Sequence[tuple[Sign, int, str, Sequence[Sample], str]]
    note: str
    holes: Sequence[str]
    accepted: str
    """The accepted holes in words; "" if there are none."""
    numbers: Sequence[tuple[str, str]]
    footer: str
