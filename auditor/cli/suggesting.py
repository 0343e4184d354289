"""An argument parser that names the command or flag that was probably meant."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NoReturn

_CHOICE: Final = re.compile(r"argument \S+: invalid choice: '(?P<given>[^']*)'")
_UNKNOWN: Final = "unrecognized arguments: "


class SuggestingParser(argparse.ArgumentParser):
    """Adds "did you mean .." to the errors of unknown commands, choices and flags."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        found, rest = super().parse_known_args(args, namespace)
        flags = [one for one in rest if one.startswith("-")]
        if flags and not list(self._subcommands()):  # a command's own parser: it knows the flags that fit
            self.error(f"{_UNKNOWN}{' '.join(rest)}")
        return found, rest

    def error(self, message: str) -> NoReturn:
        if choice := _CHOICE.match(message):
            message += _meant(choice["given"], self._choices())
        elif message.startswith(_UNKNOWN):
            given = message.removeprefix(_UNKNOWN).split()[0].partition("=")[0]
            message += _meant(given, self._option_string_actions)
        super().error(message)

    def _subcommands(self) -> Iterator[str]:
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                yield from action.choices

    def _choices(self) -> Iterator[str]:
        for action in self._actions:
            yield from map(str, action.choices or ())


def _meant(given: str, candidates: Iterable[str]) -> str:
    import difflib  # most command lines are right

    alike: Sequence[str] = difflib.get_close_matches(given, list(candidates), 1)
    return f": did you mean {alike[0]}?" if alike else ""
