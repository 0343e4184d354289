"""Declare the flags of a command, in the sections of its help page. A flag keeps its raw text; config/settings.py reads
the text as it reads an environment variable.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any, Final

from auditor.config.settings import CHANNELS, SETTINGS

ARGUMENTS: Final = "positional arguments"
OPTIONS: Final = "options"
OBJECTS: Final = "which objects"
RULES: Final = "rules and findings"
DIGESTS: Final = "digests"
SOURCE: Final = "where facts come from"
PACE: Final = "calls and their pace"
RESULTS: Final = "results"
BATCH: Final = "S3 Batch Operations"
ALERTS: Final = "alerts"
CONNECTION: Final = "connection"
_SECTIONS: Final = {
    OBJECTS: "versions allow_empty",
    RULES: "level only ignore fail_on fail_on_outcomes semantics key_policies",
    DIGESTS: "ledger algorithms streams queue hash accept_cost max_age percent grace record",
    SOURCE: "source inventory",
    PACE: "engine concurrency max_rate max_calls max_cost keep every",
    RESULTS: "out",
    BATCH: "batch_over batch_manifest batch_role",
    ALERTS: " ".join(CHANNELS),
    CONNECTION: "endpoint_url profile region expected_owner requester_pays",
}
_SECTION_OF: Final = {name: section for section, names in _SECTIONS.items() for name in names.split()}
"""By setting, the section of its flag. Any other flag names its section, or stands among the options."""
RUN: Final = "a run folder, or s3://BUCKET[/PREFIX]: the latest complete run of that target"
IDLE: Final = "end when the queue has been empty for this long (20)"


class Flags:
    """The flags and arguments of one parser, in the order of its help page.

    sections: flags and arguments by the title of their section. words: the text below such a title, if it has one.
    refusal: returns why these flags do not go together, None if they do.
    """

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self.sections: dict[str, list[argparse.Action]] = {ARGUMENTS: [], OPTIONS: []}
        self.words: dict[str, str] = {}
        self.refusal: Callable[[argparse.Namespace], str | None] = lambda found: None
        self._daily: str | None = None
        self._parser = parser
        self._add: Callable[..., argparse.Action] = parser.add_argument

    @property
    def all(self) -> Iterable[argparse.Action]:
        return chain.from_iterable(self.sections.values())

    @property
    def by_option(self) -> dict[str, argparse.Action]:
        """Every flag by each of its forms, such as "-v" and "--verbose"."""
        return {option: action for action in self.all for option in action.option_strings}

    @property
    def daily(self) -> list[argparse.Action] | None:
        """The flags that `--help` shows, in its order; None if it shows all of the command's."""
        if self._daily is None:
            return None
        return [self.by_option[f"--{name}"] for name in f"{self._daily} verbose quiet help help-all".split()]

    def show_daily(self, names: str) -> None:
        """Let `--help` show these flags and those of all commands alone. names: without their dashes, with spaces."""
        self._daily = names

    def add(self, flag: str, text: str, section: str = "", *more_forms: str, **more: Any) -> argparse.Action:
        """Add a flag or an argument. flag: its name and, after a space, the name of its value; a flag without one is
        True if it is given. section: of the help page; "" for the options, or the arguments. more_forms: short forms of
        the flag. more: what argparse's add_argument takes.
        """
        name, _, metavar = flag.partition(" ")
        is_flag = name.startswith("-")
        if metavar:
            more["metavar"] = metavar
        elif is_flag and not more.keys() & {"action", "choices"}:
            more["action"] = "store_true"
        action = self._add(*more_forms, name, help=text, **more)
        self.sections.setdefault(section or (OPTIONS if is_flag else ARGUMENTS), []).append(action)
        return action

    @contextmanager
    def either(self) -> Iterator[None]:
        """Let the flags that the `with` block adds cannot be combined."""
        self._add = self._parser.add_mutually_exclusive_group().add_argument
        yield
        self._add = self._parser.add_argument

    def settings(self, *names: str, section: str = "", **helps: str) -> None:
        """Add the flags of the settings with these names, each to its section. helps: settings with a help text for
        this command alone.
        """
        for name in (*names, *helps):
            setting = SETTINGS[name]
            how = {} if " " in setting.flag else {"action": "store_const", "const": True}
            text = helps.get(name, setting.help)
            self.add(setting.flag, text, section or _SECTION_OF.get(name, ""), dest=name, **how)

    def targets(self, number: str = "+") -> None:
        """Add the targets, and the flags that limit their objects. number: of targets, as argparse has it."""
        self.add("targets s3://BUCKET[/PREFIX]", "a bucket, or its keys with this prefix", nargs=number)
        self.settings("versions")
        self.add("--start-after KEY", "only keys after this one", OBJECTS)
        self.add("--stop-at KEY", "only keys up to and including this one", OBJECTS)

    def audited(self) -> None:
        """Add the flags of an audit that `auditor policy` has, too."""
        self.refusal = _names_no_objects
        self.targets("*")
        self.add("--all-buckets", "every bucket of the account", OBJECTS)
        estate = "every bucket of the accounts in this TOML file, each read with its own role"
        self.add("--estate FILE", estate, OBJECTS)
        self.settings("allow_empty", "level", "only", "ignore", "fail_on", "semantics", "key_policies", "out")
        self.settings("source", "inventory")
        self.pace()
        self.settings("ledger", "algorithms", "streams")
        with self.either():
            self.settings("queue", "hash")
        self.settings("accept_cost")
        self.words[BATCH] = (
            "S3 can hash large and archived objects itself: the auditor writes manifests and jobs, but creates no job."
        )
        self.settings("batch_over", "batch_manifest", "batch_role", *CHANNELS)
        self.connection()

    def pace(self) -> None:
        """Add the flags of an engine and its calls."""
        self.settings("engine", "concurrency", "max_rate", "max_calls")

    def connection(self) -> None:
        self.settings("endpoint_url", "profile", "region", "expected_owner", "requester_pays")
        self.config()

    def ledger_only(self) -> None:
        """Add the flags of a command that calls the ledger and never S3."""
        self.settings("ledger", endpoint_url="URL of DynamoDB, unless it has its own endpoint")
        self.settings("profile", region="region of the table")
        self.config()

    def run_folder(self) -> None:
        """Add the argument of a command that reads one run."""
        self.add("run_folder RUN", RUN)

    def run_bucket(self) -> None:
        """Add the flags for a run folder in a bucket."""
        self.settings("endpoint_url", "profile", region="region of the run folder's bucket")

    def run_store(self) -> None:
        """Add the flags for a run folder in a bucket, and for the settings file."""
        self.run_bucket()
        self.config()

    def trust(self, section: str = "") -> None:
        self.add("--trust X", "also trust this party; may be repeated", section, action="append")

    def config(self) -> None:
        self.add("--config FILE", "settings file (auditor.toml, if it exists)", CONNECTION)

    def form(self, choices: Sequence[str] = ("table", "json"), text: str = "how results are printed") -> None:
        """Add the flag --format."""
        self.add("--format", text, RESULTS, choices=choices, default="table")

    def of_all_commands(self) -> None:
        """Add the flags that each command has."""
        text = "log each step to stderr; -vv logs more, -vvv also the SDKs' steps"
        self.add("--verbose", text, "", "-v", action="count", default=0)
        self.add("--quiet", "print only results, warnings and errors", "", "-q")
        self.add("--no-progress", "show no progress")


def _names_no_objects(found: argparse.Namespace) -> str | None:
    """Return the parser's sentence if neither targets nor a flag in their place say which objects are meant."""
    if found.targets or found.all_buckets or found.estate or getattr(found, "fill", None) is not None:
        return None
    others = "--all-buckets, --estate or --fill" if "fill" in found else "--all-buckets or --estate FILE"
    return f"the following arguments are required: s3://BUCKET[/PREFIX], or {others}"


def flag_of(name: str) -> str:
    """Return the flag that gives an option, by the option's name: `--max-rate` for max_rate."""
    return SETTINGS[name].option if name in SETTINGS else f"--{name.replace('_', '-')}"


def whole_number(text: str) -> int:
    """Read the number of a flag that is no setting. Raises ArgumentTypeError, whose text argparse prints."""
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        raise argparse.ArgumentTypeError(f"{text[:100]!r} is not a whole number: give one like 8")
    return int(text)
