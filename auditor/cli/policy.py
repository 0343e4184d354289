"""`auditor policy`."""

from __future__ import annotations

import argparse
import json
import sys

from auditor.aws import make_session
from auditor.cli.context import settings_of, targets_of
from auditor.plan import select
from auditor.policies import Selection, audit_policy, partition_of
from auditor.rules import RULES


def run(options: argparse.Namespace) -> int:
    settings = settings_of(options)
    targets = targets_of(options, settings)
    chosen = select(RULES, settings.rules, settings.only, settings.ignore, settings.level)
    region = make_session(settings.profile, settings.region).region_name
    policy = audit_policy(targets, settings, Selection.of_rules(chosen), partition_of(region))
    sys.stdout.write(json.dumps(policy, indent=2) + "\n")
    return 0
