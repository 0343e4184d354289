"""The command `auditor diff`."""

from __future__ import annotations

import argparse
import json
import sys

from auditor.cli.options import settings_of
from auditor.cli.output import first_word, heard, print_result
from auditor.cli.terminal import columns
from auditor.reports.diff import Diff
from auditor.reports.diff_text import FirstChanges, change_line, render
from auditor.runs.folder_place import latest_place
from auditor.runs.run import Run
from auditor.text import visible


def run(options: argparse.Namespace) -> int:
    """Compare the two runs, and print the changes."""
    settings = settings_of(options)
    first_word(f"reading the runs {visible(options.old)} and {visible(options.new)}")
    places = (latest_place(place, settings.out, **settings.connection) for place in (options.old, options.new))
    old, new = (Run(place, **settings.connection) for place in places)
    work, first = Diff(old, new), FirstChanges()
    heard()
    if options.format == "jsonl":
        for change in work.changes():
            sys.stdout.write(json.dumps(change_line(change)) + "\n")
        return 0
    for change in work.changes():
        first.add(change)
    document = {"old": old.run_id, "new": new.run_id, "changes": work.counts}
    print_result(options.format, document, lambda: render(old.run_id, new.run_id, work.counts, first, columns()))
    return 0
