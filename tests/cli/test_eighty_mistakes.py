"""The mistakes that people make: each is answered by one clear sentence and the right exit code, without a retry."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Final

import pytest

from tests.cli.conftest import Run
from tests.support.servers.stub import StubServer

FILES: Final = {
    "file.txt": "hello",
    "typo.toml": "max_rat = 3\n",
    "estate.toml": '[[account]]\nid = "1"\n',
    "role.toml": '[[accounts]]\nrole = "arn:aws:iam::1:role/x"\n',
}
_ASKS: Final = frozenset({"audit", "plan", "estimate", "hash", "verify", "explain"})
"""Commands that call a server."""
_MOST_CALLS: Final = 40
_NO_RUN: Final = "is not a run folder: give its path or URI, OUT/bucket=BUCKET/run=ID"
_NEEDED: Final = "the following arguments are required: "
_NO_LEDGER: Final = "--ledger is missing: give sqlite:PATH or dynamodb:TABLE"
MISTAKES: Final = (
    # the command line
    ("audti", 2, "there is no command 'audti': did you mean audit?"),
    ("ls", 2, "there is no command 'ls'"),
    ("help audti", 2, "there is no command 'audti': did you mean audit?"),
    ("digests exprt", 2, "there is no command 'digests exprt': did you mean export?"),
    ("digests", 2, f"{_NEEDED}ACTION"),
    ("--verison", 2, "unrecognized arguments: --verison: did you mean --version?"),
    ("audit s3://audited --enigne x", 2, "unrecognized arguments: --enigne x: did you mean --engine?"),
    ("audit s3://audited --format xml", 2, "argument --format: invalid choice: 'xml' (choose from "),
    ("audit s3://audited --only", 2, "argument --only: expected one argument"),
    ("rules --format yaml", 2, "argument --format: invalid choice: 'yaml' (choose from "),
    ("rules O99", 2, "there is no rule 'O99': did you mean O"),
    ("completion tcsh", 2, "argument shell: invalid choice: 'tcsh' (choose from "),
    ("audit", 2, f"{_NEEDED}s3://BUCKET[/PREFIX], or --all-buckets, --estate or --fill"),
    ("policy", 2, f"{_NEEDED}s3://BUCKET[/PREFIX], or --all-buckets or --estate FILE"),
    ("plan", 2, f"{_NEEDED}s3://BUCKET[/PREFIX]"),
    ("explain", 2, f"{_NEEDED}s3://BUCKET/KEY"),
    ("diff one", 2, f"{_NEEDED}NEW"),
    ("renew", 2, f"{_NEEDED}--events"),
    ("accept 123", 2, f"{_NEEDED}--run"),
    ("export none", 2, f"{_NEEDED}--format"),
    ("fix-kit none", 2, f"{_NEEDED}--out"),
    ("digests retire s3://audited/a --ledger sqlite:d.db", 2, f"{_NEEDED}--by, --reason"),
    ("plan s3://audited --ranges many", 2, "argument --ranges: 'many' is not a whole number: give one like 8"),
    ("audit s3://audited --jobs two", 2, "argument --jobs: 'two' is not a whole number: give one like 8"),
    # the target
    ("audit audited", 2, "'audited' is not an S3 URI: write s3://audited"),
    ("audit audited/prefix/", 2, "'audited/prefix/' is not an S3 URI: write s3://audited/prefix/"),
    ("audit s3:/audited", 2, "'s3:/audited' is not an S3 URI: write s3://audited"),
    ("audit s3//audited/a", 2, "'s3//audited/a' is not an S3 URI: write s3://audited/a"),
    ("audit s3:audited", 2, "'s3:audited' is not an S3 URI: write s3://"),
    ("audit s3://", 2, "'' is not a bucket name (it has 0 characters, and a bucket name has 3 to 63)"),
    ("audit s3://ok", 2, "'ok' is not a bucket name (it has 2 characters, and a bucket name has 3 to 63)"),
    ("audit 's3://my bucket'", 2, "'my bucket' is not a bucket name (' ' is in no name)"),
    ("audit s3://my_bucket!", 2, "'my_bucket!' is not a bucket name ('!' is in no name)"),
    ("audit s3://a..b", 2, "'a..b' is not a bucket name (two dots follow each other)"),
    ("audit s3://-ab", 2, "'-ab' is not a bucket name (a name begins and ends with a letter or a digit)"),
    ("audit s3://*", 2, "'*' has a `*`, and no bucket name has one: name each bucket"),
    ("audit s3://logs--use1-az4--x-s3", 2, "'logs--use1-az4--x-s3' is a directory bucket"),
    ("audit ./audited", 2, "'./audited' is not an S3 URI: write s3://BUCKET"),
    ("audit https://example.com/audited", 2, "a URL that begins with 'https://example.com' is not an S3 URI"),
    ("audit arn:aws:iam::123456789012:role/x", 2, "is not an S3 URI: write s3://BUCKET"),
    ("audit s3://adited", 1, "there is no bucket named 'adited' (NoSuchBucket): check the name"),
    ("audit s3://audited/prefx/", 4, "nothing is listed under s3://audited/prefx/: check the prefix"),
    ("audit 's3://audited/*.pdf'", 4, "`*` is an ordinary character of a key here, not a wildcard"),
    ("audit s3://audited --start-after b --stop-at a", 2, "the range is empty: --stop-at 'a' does not come after"),
    ("explain s3://audited", 2, "s3://audited names no object: write s3://BUCKET/KEY"),
    ("explain s3://audited/none", 2, "s3://audited/none does not exist: give the whole key"),
    ("inventory s3://ok", 2, "'ok' is not a bucket name"),
    # settings
    ("audit s3://audited --max-rate fast", 2, "--max-rate is 'fast': give calls a second"),
    ("audit s3://audited --max-rate 0", 2, "--max-rate is '0': give calls a second"),
    ("audit s3://audited --concurrency=-1", 2, "--concurrency is '-1': give a whole number from 1"),
    ("audit s3://audited --fail-on bad", 2, "--fail-on is 'bad': give critical, high"),
    ("audit s3://audited --level none", 2, "--level is 'none': give exposure or metadata or fixity"),
    ("audit s3://audited --only O99", 2, "there is no rule 'O99': did you mean O"),
    ("audit s3://audited --jobs 0", 2, "--jobs 0 is not valid: give a number of processes"),
    ("audit s3://audited --keep acl=3x", 2, "--keep: acl is '3x': give a time like 90d"),
    ("audit s3://audited --source mix", 2, "--source is 'mix': give live or mixed"),
    ("audit s3://audited --source mixed", 2, "s3://audited has no usable S3 Inventory"),
    ("audit s3://audited --inventory reports", 2, "--inventory is 'reports': give s3://BUCKET/PREFIX"),
    ("audit s3://audited --hash", 2, "--queue and --hash need a ledger to know what is hashed"),
    ("audit s3://audited --ledger digests.db", 2, "--ledger 'digests.db' is not a ledger: write sqlite:PATH"),
    ("audit s3://audited --queue q --ledger sqlite:x.db", 2, "--queue 'q' is not a queue's URL"),
    ("audit s3://audited --out s3://audited/x", 2, "--out s3://audited/x is in the audited bucket audited"),
    ("audit s3://audited --out file.txt", 1, "a file is in the way: choose another place with --out"),
    ("audit s3://audited --profile nobody", 2, "there is no AWS profile 'nobody'"),
    ("audit s3://audited --config none.toml", 2, "there is no file 'none.toml': fix --config"),
    ("audit s3://audited --config typo.toml", 2, "typo.toml: the key 'max_rat' is unknown: did you mean max_rate?"),
    ("audit s3://audited --expected-owner 123", 2, "--expected-owner is '123': give an account's 12 digits"),
    ("audit s3://audited --max-calls 0", 2, "--max-calls is '0': give a whole number of at least 1"),
    ("audit s3://audited --max-cost free", 2, "--max-cost is 'free': give dollars"),
    ("audit s3://audited --engine boto4", 2, "--engine is 'boto4', which is not an engine: use direct"),
    ("audit s3://audited --topic x", 2, "--topic is 'x': give the ARN of an SNS topic"),
    ("audit s3://audited --endpoint-url 127.0.0.1:9000", 2, "--endpoint-url '127.0.0.1:9000' is not a URL"),
    ("audit s3://audited --endpoint-url http://", 2, "--endpoint-url 'http://' is not a URL"),
    ("plan s3://audited --ranges 0", 2, "--ranges 0 is not valid: give a number from 1 to 10,000"),
    ("hash s3://audited", 2, _NO_LEDGER),
    ("verify s3://audited", 2, _NO_LEDGER),
    ("ledger --check", 2, _NO_LEDGER),
    ("digests export s3://audited", 2, _NO_LEDGER),
    ("work", 2, "--queue is missing: give the URL of an SQS queue"),
    # files, folders and estates
    ("audit --estate none.toml", 2, "there is no file 'none.toml': fix --estate"),
    ("audit --estate estate.toml", 2, "estate.toml: the key 'account' is unknown: did you mean accounts?"),
    ("audit --estate role.toml", 2, "role is 'arn:aws:iam::1:role/x': write it like arn:aws:iam::111122223333:role"),
    ("audit --all-buckets s3://audited", 2, "--all-buckets and s3://.. cannot be combined"),
    ("audit s3://audited --resume none", 2, "'none' is not a run ID: it is written like 20260102T030405Z-0a1b2c"),
    ("audit --fill none", 2, f"'none' {_NO_RUN}"),
    ("diff one two", 2, f"'one' {_NO_RUN}"),
    ("check file.txt", 2, f"'file.txt' {_NO_RUN}"),
    ("judge none", 2, f"'none' {_NO_RUN}"),
    ("what-if none --acls-off", 2, f"'none' {_NO_RUN}"),
    ("what-if none --policy none.json", 2, "the policy file none.json cannot be read (No such file or directory)"),
    ("report none", 2, "there is no complete run at 'none': give a run folder"),
    ("report file.txt", 2, "'file.txt' is a file: give a run folder"),
    ("digests import none s3://audited --ledger sqlite:d.db", 2, "none cannot be read (No such file or directory)"),
)


def test_there_are_eighty() -> None:
    assert len({line for line, _, _ in MISTAKES}) == len(MISTAKES) >= 80


@pytest.mark.parametrize(("line", "expected", "sentence"), MISTAKES, ids=[line for line, _, _ in MISTAKES])
def test_a_mistake_gets_one_clear_sentence(
    run: Run, stub: StubServer, tmp_path: Path, line: str, expected: int, sentence: str
) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    stub.put("audited", "a", b"x")
    arguments = shlex.split(line)
    if arguments[0] in _ASKS and not {"--endpoint-url", "--estate"} & set(arguments):
        arguments += ["--endpoint-url", stub.url]
    code, out, err = run(*arguments)
    said = err.splitlines()
    assert code == expected, err
    assert sentence in said[-1]
    assert all(one.startswith("auditor: ") and len(one) < 400 for one in said), err
    if expected != 4:  # a run that listed nothing has a result
        assert (out, len(said)) == ("", 1)
    assert len(stub.requests) < _MOST_CALLS, "each call is tried once"
