"""The command `auditor rules`."""

from __future__ import annotations

import argparse
import sys

from auditor.errors import UsageError
from auditor.reports.text_table import Column, text_table
from auditor.rules import RULES
from auditor.rules.docs import as_details, as_json
from auditor.rules.unknown import no_rule


def run(options: argparse.Namespace) -> int:
    registered = {rule.id: rule for rule in RULES}
    wanted = [name.upper() for name in options.ids]
    if unknown := [name for name in wanted if name not in registered]:
        raise UsageError(no_rule(unknown[0], RULES))
    chosen = [registered[name] for name in wanted] or list(RULES)
    if options.format == "json":
        text = as_json(chosen)
    elif wanted:
        text = "\n".join(as_details(rule) for rule in chosen)
    else:
        rows = [(rule.id, rule.severity.value, rule.name, rule.title) for rule in chosen]
        text = "\n".join(text_table([Column()] * 4, rows))
    sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
    return 0
