"""The content of the help pages: the groups of the commands, each command's daily flags, and examples."""

from __future__ import annotations

from typing import Final

COMMAND_GROUPS: Final = {
    "every day": ("audit", "explain", "diff", "what-if", "fix-kit", "verify"),
    "before the first audit": ("demo", "estimate", "policy", "rules"),
    "a finished run, without a request to its bucket": (
        *("report", "export", "sql", "judge", "check", "accept", "who"),
    ),
    "digests of the bytes": ("hash", "work", "digests", "ledger"),
    "large buckets, and a shell": ("renew", "plan", "inventory", "completion"),
}
"""The commands in the order of `auditor --help`, by the title of their group."""

DAILY_FLAGS: Final[dict[str, tuple[str, ...]]] = {
    "audit": (
        *("--all-buckets", "--versions", "--ignore", "--fail-on", "--ledger", "--hash", "--max-rate"),
        *("--out", "--resume", "--format", "--profile", "--config"),
    ),
    "estimate": ("--versions", "--keep", "--ledger", "--hash", "--format", "--profile", "--config"),
    "explain": ("--run", "--version-id", "--out", "--format", "--profile", "--config"),
    "hash": (
        "--versions",
        "--ledger",
        "--algorithm",
        "--accept-cost",
        "--max-rate",
        "--format",
        "--profile",
        "--config",
    ),
    "plan": ("--versions", "--ranges", "--listing", "--out", "--format", "--profile", "--config"),
    "policy": (
        *("--all-buckets", "--versions", "--level", "--ledger", "--queue", "--hash", "--out", "--audited-keys"),
        *("--role", "--stage", "--profile", "--config"),
    ),
    "verify": (
        *("--versions", "--ledger", "--algorithm", "--max-age", "--percent", "--record", "--fail-on", "--out"),
        *("--format", "--profile", "--config"),
    ),
    "what-if": (
        *("--acls-off", "--policy", "--no-policy", "--block-public-access", "--trust", "--keys", "--format"),
        *("--profile", "--config"),
    ),
}
"""By command, the flags that its `--help` shows, besides those of all commands; a command that is missing here shows
all of its flags. `--help-all` shows all of every command."""

_RUN: Final = "s3://my-bucket"
_FOLDER: Final = "bucket=b/run=20260101T000000Z-123456"

EXAMPLES: Final[dict[str, tuple[str, ...]]] = {
    "": (
        "auditor demo",
        "auditor audit s3://my-bucket/prefix/",
        "auditor explain s3://my-bucket/report.pdf",
    ),
    "audit": (
        "auditor audit s3://my-bucket",
        "auditor audit s3://my-bucket/2026/ --versions --fail-on new:high --out s3://reports/audits",
        "auditor audit s3://my-bucket --jobs 4 --source mixed",
        "auditor audit --estate estate.toml --out s3://reports/audits",
    ),
    "estimate": (
        "auditor estimate s3://my-bucket",
        "auditor estimate s3://first s3://second --level exposure --format json",
        "auditor estimate s3://my-bucket --ledger sqlite:digests.db --hash",
        "auditor estimate s3://my-bucket --keep acl=3d,head=8d",
    ),
    "hash": (
        "auditor hash s3://my-bucket --ledger sqlite:digests.db",
        "auditor hash s3://my-bucket/masters/ --ledger dynamodb:digests --algorithm sha256,md5",
        "auditor hash s3://my-bucket --ledger sqlite:digests.db --max-rate 50 --accept-cost",
    ),
    "work": (
        "auditor work --queue https://sqs.eu-west-1.amazonaws.com/123456789012/hash --ledger dynamodb:digests",
        "auditor work --queue https://sqs.eu-west-1.amazonaws.com/123456789012/hash --ledger sqlite:d.db --idle 60",
    ),
    "renew": (
        "auditor renew --events https://sqs.eu-west-1.amazonaws.com/123456789012/s3-events --out s3://reports/audits",
    ),
    "verify": (
        "auditor verify s3://my-bucket --ledger sqlite:digests.db",
        "auditor verify s3://my-bucket --ledger dynamodb:digests --max-age 90d --record",
        "auditor verify s3://my-bucket/masters/ --ledger sqlite:digests.db --percent 5 --combined lines.jsonl",
    ),
    "digests export": (
        "auditor digests export s3://my-bucket --ledger sqlite:digests.db | sha256sum --check",
        "auditor digests export s3://my-bucket/masters/ --ledger sqlite:digests.db --manifest bagit --relative",
    ),
    "digests import": (
        "auditor digests import SHA256SUMS s3://my-bucket/masters/ --ledger sqlite:digests.db",
        "auditor digests import manifest-md5.txt s3://my-bucket --ledger dynamodb:digests --manifest bagit",
    ),
    "digests history": ("auditor digests history s3://my-bucket --ledger sqlite:digests.db --out history.csv",),
    "digests import-report": (
        "auditor digests import-report s3://reports/job-1/manifest.json --ledger dynamodb:digests",
    ),
    "digests retire": (
        "auditor digests retire s3://my-bucket/old.tif --by Ada --reason 'replaced by new.tif' --ledger sqlite:d.db",
    ),
    "digests acknowledge": (
        "auditor digests acknowledge s3://my-bucket/a.tif --by Ada --reason 'restored' --ledger sqlite:digests.db",
    ),
    "ledger": (
        "auditor ledger s3://my-bucket/a.tif --ledger sqlite:digests.db",
        "auditor ledger --check --ledger sqlite:digests.db",
        "auditor ledger --repair sqlite:digests.db",
    ),
    "plan": (
        "auditor plan s3://my-bucket",
        "auditor plan s3://my-bucket/2026/ --versions --ranges 16",
        "auditor plan s3://my-bucket --listing --format json",
    ),
    "inventory": (
        "auditor inventory s3://my-bucket",
        "auditor inventory s3://my-bucket --versions --inventory s3://reports/inventory --expected-owner 123456789012",
    ),
    "explain": (
        "auditor explain s3://my-bucket/report.pdf",
        f"auditor explain s3://my-bucket/report.pdf --run {_RUN}",
        "auditor explain s3://my-bucket/report.pdf --version-id 3sL4kqtJlcpXroDTDmJ --format json",
    ),
    "what-if": (
        f"auditor what-if {_RUN} --acls-off",
        f"auditor what-if {_RUN} --policy policy.json --format sarif",
        f"auditor what-if {_RUN} --block-public-access --keys changed.jsonl",
    ),
    "fix-kit": (f"auditor fix-kit {_RUN} --out kit", f"auditor fix-kit s3://reports/{_FOLDER} --out kit --format json"),
    "diff": (
        "auditor diff auditor-runs/bucket=my-bucket/run=20260101T000000Z-123456 s3://my-bucket",
        "auditor diff OLD NEW --format jsonl",
    ),
    "judge": (
        f"auditor judge {_RUN} --all-rules",
        f"auditor judge {_RUN} --config auditor.toml --trust 123456789012",
    ),
    "check": (f"auditor check {_RUN}", f"auditor check s3://reports/{_FOLDER} --format json"),
    "accept": (
        f"auditor accept 0123456789abcdef0123456789abcdef --run {_RUN} --owner Web --reason 'the public site'",
        f"auditor accept 0123456789ab --run {_RUN}",
    ),
    "who": ("auditor who 123456789012", f"auditor who 123456789012 --run {_RUN}"),
    "report": (f"auditor report auditor-runs/{_FOLDER}", f"auditor report s3://reports/{_FOLDER} --out page.html"),
    "export": (
        f"auditor export {_RUN} --format csv --out findings.csv",
        f"auditor export {_RUN} --format markdown",
        f"auditor export {_RUN} --format ocsf --out findings.json",
    ),
    "sql": (
        f"auditor sql {_RUN} 'FROM objects SELECT prefix1, count(*) WHERE public GROUP BY ALL'",
        f"auditor sql {_RUN} 'FROM objects SELECT key WHERE public_grant = false' --format csv",
        f"auditor sql s3://reports/{_FOLDER} --schema athena > tables.sql",
    ),
    "rules": ("auditor rules", "auditor rules O02 B01", "auditor rules --format json"),
    "policy": (
        "auditor policy s3://my-bucket",
        "auditor policy --estate estate.toml --out s3://reports/audits",
        "auditor policy s3://my-bucket --role audit --stage prod --out s3://reports/audits",
    ),
    "demo": ("auditor demo", "auditor demo --from ~/Documents --engine boto3"),
    "completion": (
        "auditor completion bash > ~/.local/share/bash-completion/completions/auditor",
        "auditor completion zsh > ~/.zfunc/_auditor",
        "auditor completion fish > ~/.config/fish/completions/auditor.fish",
    ),
}
"""For each command, at most three whole command lines."""
