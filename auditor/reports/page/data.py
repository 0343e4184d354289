"""The content of a report page: what its templates print, with every count and sentence ready."""

from __future__ import annotations

from msgspec import Struct

from auditor.reports.page.pictures import CoverageBar, Curve, Places, Share, Spark
from auditor.reports.page.signs import Sign


class Chip(Struct, frozen=True):
    """A short fact below the headline. tone: "ok", "warn" or "". code: a text from outside, shown as code."""

    text: str
    tone: str = ""
    code: str | None = None


class Headline(Struct, frozen=True, kw_only=True):
    """The verdict on the whole run. kicker: the work, before the target's name. title: two parts of the sentence around
    `emphasis`. lead: a sentence in bold, and the rest.
    """

    kicker: str
    target: str
    when: str
    title: tuple[str, str]
    emphasis: str = ""
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
    how: str = ""


class ChangeCard(Struct, frozen=True):
    """A class of changes since the last run. sign: a plus, a minus or ""."""

    sign: str
    number: int
    words: str
    text: str


class SampleView(Struct, frozen=True):
    """A key that is an example of a group. grantee: in words."""

    key: str
    version_id: str | None = None
    note: str = ""


class GroupView(Struct, frozen=True, kw_only=True):
    """A group of findings, or of objects with one verdict, as the list shows it."""

    id: str
    kind: str
    """The first word of its line: a severity, or a verdict."""
    severity: str = ""
    verdict: str
    sign: Sign | None = None
    before: str = ""
    subject: str
    after: str = ""
    prefix: str | None = None
    count: int
    new: int = 0
    new_words: str = ""
    excepted: int = 0
    rule: str = ""
    rows: tuple[tuple[str, str], ...] = ()
    """Names and values of the facts beside the text."""
    why: str
    fix: str
    samples: tuple[SampleView, ...]
    more: str
    command: str


class Tick(Struct, frozen=True):
    """A filter of the list. number: of groups."""

    name: str
    value: str
    label: str
    mark: str
    number: int


class HoleRow(Struct, frozen=True):
    """A fact that could not be read. objects: None for a fact of the bucket."""

    objects: int | None
    place: str | None
    refused: str
    rules: str
    advice: str


class ExceptionRow(Struct, frozen=True):
    """An exception of the configuration, with its matches. stale: True if its owner has something to do."""

    id: str
    what: str
    matched: int
    owner: str
    reason: str
    ends: str
    stale: bool


class RuleRow(Struct, frozen=True):
    """A rule of the run and its answer. found: number of findings. undecided: why it has no answer for some."""

    id: str
    title: str
    found: int
    undecided: str
    off: bool = False


class NamedValue(Struct, frozen=True):
    """A name and a value, in words: of the bucket, of the hashing, of the calls."""

    name: str
    value: str


class PageData(Struct, frozen=True, kw_only=True):
    """The whole content of the page of one audit. An empty tuple or None: the page has no such section. index: relative
    address of the index page of all targets; None if there is none. banner: the sentence on top of all; "" for a run
    whose listing reached its end.
    """

    index: str | None = None
    banner: str = ""
    title: str
    headline: Headline
    cards: tuple[NumberCard, ...]
    first: tuple[FirstChange, ...]
    since: str
    """The heading of the changes."""
    changes: tuple[ChangeCard, ...]
    unchanged: str
    """The sentence in place of the changes, if there is nothing to compare with."""
    causes: tuple[str, ...]
    """Sentences on changes of the bucket or the configuration."""
    curve: Curve | None
    coverage: CoverageBar
    places: Places | None
    openings: tuple[GroupView, ...]
    """Groups of objects that somebody else reaches, or that may be reached."""
    findings: tuple[GroupView, ...]
    total: int
    """Number of findings."""
    ticks: tuple[Tick, ...]
    holes: tuple[HoleRow, ...]
    exceptions: tuple[ExceptionRow, ...]
    rules: tuple[RuleRow, ...]
    rules_words: str
    settings: tuple[NamedValue, ...]
    numbers: tuple[NamedValue, ...]
    not_looked_at: tuple[str, ...]
    footer: str
    copy: tuple[str, ...]
    """The lines that the button copies."""


class VerifyPage(Struct, frozen=True, kw_only=True):
    """The whole content of the page of one verification. parts: the outcomes, which add up to `total`. note: a sentence
    on the examples of the groups; "" if they are of the whole run.
    """

    title: str
    headline: Headline
    cards: tuple[NumberCard, ...]
    parts: tuple[Share, ...]
    bar: tuple[Share, ...]
    total: int
    groups: tuple[GroupView, ...]
    note: str
    holes: tuple[str, ...]
    accepted: str
    """The accepted holes in words; "" if there are none."""
    numbers: tuple[NamedValue, ...]
    footer: str
