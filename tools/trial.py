"""Try the auditor on one bucket of the owner's, and write a report that can be sent back: `make trial BUCKET=s3://..`.

It audits the bucket, asks S3 as a stranger if the verdicts hold, and prices the calls. The report has counts, verdicts,
codes and seconds: no key, no name, no account number.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from auditor.model.version import VERSION

DONE: Final = frozenset({0, 3, 4})
"""Exit codes with which a command has printed its result."""
CONNECTION: Final = ("--profile", "--region", "--endpoint-url")
OF_SUMMARY: Final = ("complete", "coverage", "verdicts", "findings", "calls", "seconds")
"""The members of a run's summary that the report takes over: numbers under names of our own."""
OF_ESTIMATE: Final = ("dollars", "calls")
OF_UNDECIDED: Final = ("rule", "action", "code")


class TrialFailed(Exception):  # noqa: N818 - it names the end of the trial
    """A command of the trial printed no result. The text is its own last sentence."""


def command(name: str, *arguments: str) -> tuple[int, dict[str, Any]]:
    """Run a command of the auditor, with its progress on stderr. Return its exit code and its JSON."""
    words = [sys.executable, "-m", "auditor", name, *arguments, "--format", "json"]
    done = subprocess.run(words, stdout=subprocess.PIPE, check=False)  # noqa: S603 - the user's own flags
    if done.returncode not in DONE or not done.stdout:
        raise TrialFailed(f"auditor {name} ended with exit code {done.returncode}: the trial is over")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[0])
    return done.returncode, found


def taken(found: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return these members of a JSON value, as far as it has them."""
    return {name: found[name] for name in names if name in found}


def audit_report(code: int, summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of the report on the audit. summary: that of the run."""
    calls = sum(summary["calls"][kind] for kind in ("list", "head", "acl"))
    return {
        "exit_code": code,
        **taken(summary, OF_SUMMARY),
        "calls_per_second": round(calls / max(summary["seconds"], 0.001), 1),
        "rules_undecided": [taken(one, OF_UNDECIDED) for one in summary["rules_undecided"]],
    }


def trial(
    target: str, out: str, connection: Sequence[str], strangers: Sequence[str], audit: Sequence[str]
) -> dict[str, Any]:
    """Audit, estimate and probe the target, and return the report. out: the place of the run. connection: flags of
    each command. strangers: flags of `auditor probe`. audit: further flags of `auditor audit`. Raises TrialFailed.
    """
    audited, summary = command("audit", target, "--out", out, *connection, *audit)
    _, estimate = command("estimate", target, *connection)
    probed, probe = command("probe", summary["out"], *connection, *strangers)
    return {
        "auditor": VERSION,
        "python": platform.python_version(),
        "audit": audit_report(audited, summary),
        "estimate": taken(estimate, OF_ESTIMATE),
        "probe": {"exit_code": probed, **probe},
    }


def _flags(given: Mapping[str, str | None]) -> list[str]:
    return [word for flag, value in given.items() if value is not None for word in (flag, value)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the trial, write the report, and return the exit code: 1 if a command failed."""
    parser = argparse.ArgumentParser(prog="make trial", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("target", metavar="s3://BUCKET[/PREFIX]")
    parser.add_argument("--report", default="trial.json", help="write the report there (trial.json)")
    parser.add_argument("--as", dest="foreign", help="a profile of a foreign account that asks too")
    parser.add_argument("--vantage", help="the public address of this machine")
    for flag in CONNECTION:
        parser.add_argument(flag, help="as of auditor audit")
    given, audit = parser.parse_known_args(arguments)
    if not Path(given.report).parent.is_dir():
        parser.error(f"there is no folder for --report {given.report}: make it first")
    strangers = _flags({"--as": given.foreign, "--vantage": given.vantage})
    connection = _flags(dict(zip(CONNECTION, (given.profile, given.region, given.endpoint_url), strict=True)))
    try:
        with tempfile.TemporaryDirectory(prefix="auditor-trial-") as out:
            report = trial(given.target, out, connection, strangers, audit)
    except TrialFailed as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("stopped: there is no report\n")
        return 130
    Path(given.report).write_text(json.dumps(report, indent=1) + "\n")
    sys.stderr.write(f"the report is {given.report}: read it, and send it back\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
