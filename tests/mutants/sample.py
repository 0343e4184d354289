"""Change the code a little, a sample of changes at a time, and list the changes that no test notices: `make mutants`.

mutmut (https://mutmut.readthedocs.io) changes functions and runs the tests that reach each. This module draws the
sample, halves and doubles constants itself, knows the changes that are equal in effect, and judges. pyproject.toml,
`[tool.mutmut]`, names the modules.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from operator import eq
from pathlib import Path
from typing import Final

from tests.support.paths import ROOT

SAMPLE: Final = 600
CONSTANTS: Final = 10
"""One of this many changes of the sample is a constant."""
SEED: Final = 1
TOLERATED: Final = 0.05
"""The share of the sample that may survive without a place on the list."""
EQUAL: Final = Path(__file__).with_name("equal.toml")
COPY: Final = ROOT / "mutants"
"""Where mutmut keeps the changed code and its results, from one run to the next."""
CODES: Final = COPY / "constants.json"
"""Where the results of the constants are kept, like mutmut's codes."""
LAUNCHER: Final = """
import sys
from mutmut.__main__ import cli
from mutmut.configuration import config
from mutmut.state import state
from mutmut.workers.isolation import ForkServerRunner

def submit(runner, name, tests, *limits, submit=ForkServerRunner.submit):
    submit(runner, name, sorted(tests, key=lambda test: state().duration_by_test.get(test, 0)), *limits)

ForkServerRunner.submit = submit
config().pytest_add_cli_args_test_selection = sys.argv[1].split(",")
cli(sys.argv[2:])
"""
"""Runs `mutmut` with the folders of tests that its first argument names; its own settings fix them. The quickest tests
of a change come first, because the first that fails is the last; a fork server's are in no order (mutmut 3.8.1)."""
SURVIVED: Final = frozenset({0, 5, 33})
"""mutmut's codes for a change that the tests passed with, and for one that no test reaches."""
NOTICED: Final = frozenset({1, 3, -24, 24, 36, 152, 255, -9, -11})
"""mutmut's codes for failed tests, for tests that did not end in time, and for a process that died."""
ELSEWHERE: Final = {"model": "verdict"}
"""The rooms of the list that another room's tests hold, too: the policy's are among the verdict's."""


@dataclass(frozen=True, slots=True)
class Change:
    """One small change of the code."""

    name: str
    """The name that mutmut gives it, which holds for as long as its function is not edited."""
    path: str
    line: int
    function: str
    """The function or method; of a constant its name."""
    was: str
    became: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.function}\n    - {self.was}\n    + {self.became}\n    {self.name}"


@dataclass(frozen=True, slots=True)
class Equal:
    """One entry of the list: a change that no input can tell from the code."""

    path: str
    function: str
    was: str
    became: str
    because: str
    times: int = 1
    """How many changes it means, where a function has the same line more than once."""

    def means(self, change: Change) -> bool:
        return (self.path, self.function, self.was, self.became) == (
            change.path,
            change.function,
            change.was,
            change.became,
        )

    def __str__(self) -> str:
        return f"{self.path} {self.function}: {self.was!r} -> {self.became!r}"


@dataclass(slots=True)
class Verdict:
    """How a sample came out."""

    noticed: int = 0
    listed: int = 0
    survivors: list[Change] = field(default_factory=list)
    wrong_entries: list[str] = field(default_factory=list)

    @property
    def tried(self) -> int:
        return self.noticed + self.listed + len(self.survivors)

    @property
    def share(self) -> float:
        return len(self.survivors) / max(1, self.tried)

    @property
    def holds(self) -> bool:
        return self.share <= TOLERATED and not self.wrong_entries

    def __str__(self) -> str:
        return (
            f"tried {self.tried}: noticed {self.noticed}, survived and listed as equal in effect {self.listed}, "
            f"survived and unlisted {len(self.survivors)} ({self.share:.1%}; at most {TOLERATED:.0%} may)"
        )


def changes_of(path: str, source: str, made: str, spans: Mapping[str, tuple[int, int]]) -> Iterator[Change]:
    """Read the changes of one module out of what mutmut made of it: a copy of the function for each, and one as it was.

    spans: the first and the last line of each copy in `made`, by the copy's name.
    """
    lines = made.splitlines()
    starts = {name: node.lineno for name, node in _functions(ast.parse(source))}
    for name, (first, last) in spans.items():
        of, _, number = name.rpartition("_")
        if number == "orig":
            continue
        function = of.removesuffix("__mutmut").removeprefix("x_").removeprefix("xǁ").replace("ǁ", ".")
        start, end = spans[f"{of}_orig"]
        old = [line.replace(f"{of}_orig", function.rpartition(".")[2]) for line in lines[start - 1 : end]]
        new = [line.replace(name, function.rpartition(".")[2]) for line in lines[first - 1 : last]]
        same = _alike(old, new)
        rest = _alike(old[same:][::-1], new[same:][::-1])
        head = next(at for at, line in enumerate(lines[start - 1 : end]) if f"def {of}_orig(" in line)
        was, became = (" ".join(map(str.strip, copy[same : len(copy) - rest])) for copy in (old, new))
        module = path.removesuffix(".py").replace("/", ".")
        yield Change(f"{module}.{name}", path, starts[function] + same - head, function, was, became)


def constants_of(path: str, source: str) -> Iterator[Change]:
    """Halve and double each number that the module declares: `NAME: Final = 5`, or a product such as `8 * MIB`."""
    module = path.removesuffix(".py").replace("/", ".")
    for node in ast.parse(source).body:
        match node:
            case ast.AnnAssign(target=ast.Name(name), annotation=ast.Name("Final"), value=ast.expr() as value):
                numbers = [part.value for part in ast.walk(value) if isinstance(part, ast.Constant)]
                if not numbers or {type(number) for number in numbers} - {int, float} or not _is_sum(value):
                    continue
                was, text = (" ".join(ast.unparse(part).split()) for part in (node, value))
                divided = "/" if float in map(type, numbers) else "//"
                for verb, became in (("halved", f"({text}) {divided} 2"), ("doubled", f"({text}) * 2")):
                    yield Change(f"{module}.{name}__{verb}", path, node.lineno, name, was, f"{name}: Final = {became}")


def _is_sum(value: ast.expr) -> bool:
    kinds = ast.BinOp | ast.UnaryOp | ast.operator | ast.unaryop | ast.Constant | ast.Name | ast.Load
    return all(isinstance(part, kinds) for part in ast.walk(value))


def with_constant(source: str, change: Change) -> str:
    """Return a module, or mutmut's copy of it, with the constant of this change as it became."""
    for node in ast.parse(source).body:
        match node:
            case ast.AnnAssign(target=ast.Name(change.function), end_lineno=int(last)):
                lines = source.splitlines(keepends=True)
                return "".join([*lines[: node.lineno - 1], f"{change.became}\n", *lines[last:]])
    raise SystemExit(f"{change.path} declares no {change.function}")


def reaching(change: Change, source: str, reached: Mapping[str, Sequence[str]]) -> set[str]:
    """Choose the tests for a constant: those that reach a function of its module that reads it, or, if none does, any.

    reached: the tests by function, as mutmut names it.
    """
    module = change.name.rpartition(".")[0]
    readers = [name for name, node in _functions(ast.parse(source)) if _reads(node, change.function)]
    wanted = {f"{module}.{_mangled(name)}" for name in readers}
    known = [name for name in reached if name.rpartition(".")[0] == module]
    return {test for name in known if name in wanted or wanted.isdisjoint(known) for test in reached[name]}


def _reads(function: ast.AST, name: str) -> bool:
    return any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(function))


def _mangled(function: str) -> str:
    return f"xǁ{function.replace('.', 'ǁ')}" if "." in function else f"x_{function}"


def _alike(old: Sequence[str], new: Sequence[str]) -> int:
    return len(list(takewhile(bool, map(eq, old, new))))


def _functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            for method in node.body:
                if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield f"{node.name}.{method.name}", method


def drawn(changes: Sequence[Change], size: int, seed: int) -> list[Change]:
    """Draw a sample with an equal share of each module; a module with fewer changes leaves its rest to the others.

    A change's place follows from its own text: an edit of one function leaves the draw of the others alone.
    """
    by_module: dict[str, list[Change]] = defaultdict(list)
    for change in sorted(changes, key=lambda one: _lot(one, seed)):
        by_module[change.path].append(change)
    left, found = size, []
    modules = sorted(by_module, key=lambda path: (len(by_module[path]), path))
    for at, module in enumerate(modules):
        share = by_module[module][: -(-left // (len(modules) - at))]
        found += share
        left -= len(share)
    return found


def _lot(change: Change, seed: int) -> bytes:
    text = "\n".join((str(seed), change.path, change.function, change.was, change.became, change.name))
    return hashlib.sha256(text.encode()).digest()


def judged(codes: Mapping[Change, int | None], equals: Sequence[Equal], changes: Sequence[Change]) -> Verdict:
    """Count the sample by mutmut's codes.

    changes: all changes of the modules that were sampled; each entry of the list for one of them has to mean one.
    """
    verdict = Verdict()
    listed = {change: entry for entry in equals for change in changes if entry.means(change)}
    for change, code in codes.items():
        if code not in SURVIVED | NOTICED:
            raise SystemExit(f"mutmut did not try {change.name} (its code is {code}): run it again")
        if code in NOTICED:
            verdict.noticed += 1
            if change in listed:
                verdict.wrong_entries.append(f"a test notices it, so it is not equal in effect: {listed[change]}")
        elif change in listed:
            verdict.listed += 1
        else:
            verdict.survivors.append(change)
    modules, meant = {change.path for change in changes}, list(listed.values())
    verdict.wrong_entries += [
        f"it means {meant.count(entry)} changes and not {entry.times}: {entry}"
        for entry in equals
        if entry.path in modules and meant.count(entry) != entry.times
    ]
    return verdict


def equals_of(text: str) -> list[Equal]:
    return [Equal(path, **entry) for path, entries in tomllib.loads(text).items() for entry in entries]


def chosen(modules: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """Choose from the listed modules: all, or those of the given files and folders."""
    found = [one for one in modules if not wanted or any(one == of or one.startswith(f"{of}/") for of in wanted)]
    if not found:
        raise SystemExit(f"no listed module is in {' '.join(wanted)}")
    return found


def folders_of(sample: Sequence[Change]) -> list[str]:
    """Name the folders of tests for the sample: those of its rooms, and of no others."""
    rooms = {change.path.split("/")[1] for change in sample}
    return sorted({f"tests/{folder}" for room in rooms for folder in (room, ELSEWHERE.get(room, room))})


def _made(path: str) -> Iterator[Change]:
    # Of .venv-mutants alone; the tests of this module need no mutmut.
    from mutmut.mutation.file_mutation import mutate_file_contents

    source = (ROOT / path).read_text(encoding="utf-8")
    made = mutate_file_contents(path, source)
    spans = {name: (span.start, span.end) for name, span in made.line_span_by_function_name.items()}
    return changes_of(path, source, made.code, spans)


def _code(change: Change) -> int | None:
    found: dict[str, int | None] = {}
    for file in (COPY / f"{change.path}.meta", CODES):
        if file.exists():
            found |= json.loads(file.read_text())["exit_code_by_key"]
    return found.get(change.name)


def _try_constants(sample: Sequence[Change]) -> None:
    """Run for each constant the tests that reach its readers, the quickest first, in mutmut's copy."""
    stats = json.loads((COPY / "mutmut-stats.json").read_text())
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mutmut"]
    seconds, names, codes = stats["duration_by_test"], COPY / "constant-tests.txt", dict[str, int]()
    environ = os.environ | {"MUTANT_UNDER_TEST": "", "PYTHONDONTWRITEBYTECODE": "1"}
    for change in sample:
        copy, source = COPY / change.path, (ROOT / change.path).read_text(encoding="utf-8")
        tests = sorted(reaching(change, source, stats["tests_by_mangled_function_name"]), key=lambda one: seconds[one])
        names.write_text("\n".join(tests))
        as_it_was = copy.read_text(encoding="utf-8")
        copy.write_text(with_constant(as_it_was, change), encoding="utf-8")
        try:
            command = [sys.executable, "-m", "pytest", "-x", "-q", *settings["pytest_add_cli_args"], f"@{names.name}"]
            limit = settings["timeout_constant"] + settings["timeout_multiplier"] * sum(seconds[one] for one in tests)
            codes[change.name] = tested(command, 60 + limit, COPY, environ) if tests else 33
        finally:
            copy.write_text(as_it_was, encoding="utf-8")
        CODES.write_text(json.dumps({"exit_code_by_key": codes}))


def tested(command: Sequence[str], limit: float, copy: Path, environ: Mapping[str, str]) -> int:
    """Run tests in a copy of the code, and return a code as mutmut does. limit: seconds."""
    try:
        ended = subprocess.run(command, cwd=copy, env=environ, check=False, capture_output=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return 36
    return 1 if ended.returncode == 2 else ended.returncode  # 2: a module cannot be imported


def _try(sample: Sequence[Change], tests: Sequence[str]) -> None:
    # mutmut adds and overwrites tests in its copy, but removes none.
    shutil.rmtree(COPY / "tests", ignore_errors=True)
    COPY.mkdir(exist_ok=True)
    arguments = [",".join(tests), "run", *(change.name for change in sample)]
    with (COPY / "log.txt").open("w") as log:
        ended = subprocess.run(
            [sys.executable, "-c", LAUNCHER, *arguments],
            cwd=ROOT,
            check=False,
            stdout=None if sys.stdout.isatty() else log,
            stderr=subprocess.STDOUT,
        )
    if ended.returncode:
        raise SystemExit(
            f"mutmut could not run: see above, or the end of {log.name}. If it failed to collect stats, a test "
            f"fails in its copy: cd mutants && MUTANT_UNDER_TEST=stats {sys.executable} -m pytest -x {' '.join(tests)}"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("--sample", type=int, default=SAMPLE, help="how many changes (%(default)s)")
    parser.add_argument("--seed", type=int, default=SEED, help="which ones (%(default)s)")
    parser.add_argument("--again", action="store_true", help="of the sample, those alone that survived the last time")
    parser.add_argument("modules", nargs="*", help="files and folders (all of pyproject.toml)")
    given = parser.parse_args(arguments)
    begun = time.monotonic()
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mutmut"]["only_mutate"]
    modules = chosen(listed, given.modules)
    made = [change for path in modules for change in _made(path)]
    numbers = [one for path in modules for one in constants_of(path, (ROOT / path).read_text(encoding="utf-8"))]
    constants = drawn(numbers, given.sample // CONSTANTS, given.seed)
    functions = drawn(made, given.sample - len(constants), given.seed)
    if given.again:
        functions, constants = ([one for one in part if _code(one) in SURVIVED] for part in (functions, constants))
    sample, changes = functions + constants, made + numbers
    print(f"{len(sample)} of {len(changes)} changes, {len(constants)} of them constants, seed {given.seed}", flush=True)
    if functions:
        _try(functions, folders_of(sample))
    if constants:
        _try_constants(constants)
    codes = {change: _code(change) for change in sample}
    verdict = judged(codes, equals_of(EQUAL.read_text(encoding="utf-8")), changes)
    for change in sorted(verdict.survivors, key=lambda one: (one.path, one.line)):
        print(change)
    for sentence in verdict.wrong_entries:
        print(f"{EQUAL.name}: {sentence}")
    print(f"{verdict}; {(time.monotonic() - begun) / 60:.0f} minutes")
    return 0 if verdict.holds else 1


if __name__ == "__main__":
    sys.exit(main())
