"""The parameters as deploy/parameters.js checks them and draws its conclusions, run by node without osls."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from typing import Any, Final

from tests.support.paths import ROOT
from tests.system.deploy.checks.sources import parameters

_ASK: Final = """
const ask = require(process.argv[1]);
const given = JSON.parse(require('fs').readFileSync(0));
Promise.all(given.map(({ param, values }) => {
  const known = { 'self:service': 's3-auditor', 'sls:stage': 'prod', 'self:provider.region': 'us-east-1', ...values };
  return ask({ options: { param }, resolveVariable: async (name) => known[name] }).catch((error) => error.message);
})).then((found) => console.log(JSON.stringify(found)));
"""


def checked(*cases: Sequence[str]) -> list[dict[str, Any] | str]:
    """Of each list of parameters, as name=value: the conclusions, or the sentence that refuses them."""
    given = []
    for case in cases:
        values = parameters()["default"] | dict(one.split("=", 1) for one in case)
        given.append({"param": case, "values": {f"param:{name}": value for name, value in values.items()}})
    command = ["node", "-e", _ASK, str(ROOT / "deploy" / "parameters.js")]
    done = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, check=True)
    found: list[dict[str, Any] | str] = json.loads(done.stdout)
    return found


def resolved(**values: str) -> dict[str, Any]:
    """The conclusions from a bucket and these values."""
    (found,) = checked([f"{name}={value}" for name, value in ({"buckets": "photos"} | values).items()])
    assert isinstance(found, dict), found
    return found
