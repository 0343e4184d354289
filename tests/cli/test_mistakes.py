"""The mistakes that people make: each is answered by one clear sentence and the right exit code, without a retry."""

from __future__ import annotations

import logging
import shlex
from pathlib import Path
from typing import Final

import pytest

from auditor.cli.output import Plain
from tests.cli.conftest import Run
from tests.support.servers.stub import StubServer
from tests.support.servers.stub_faults import ACCESS_DENIED, EXPIRED_TOKEN, INVALID_ACCESS_KEY, Fault

FILES: Final = {
    "file.txt": "hello",
    "typo.toml": "max_rat = 3\n",
    "nonsense.toml": "zzzzzz = 3\n",
    "broken.toml": 'engine = "direct\n',
    "nested.toml": f"a = {'[' * 100_000}",
    "digits.toml": f"max_calls = {'9' * 6000}",
    "fraction.toml": "max_calls = 1.5",
    "escape.toml": '"\\u001b[31m" = 1',
    "nul.toml": "\x00",
    "estate.toml": '[[account]]\nid = "1"\n',
    "role.toml": '[[accounts]]\nrole = "arn:aws:iam::1:role/x"\n',
}
ESCAPE: Final = "\x1b[31mred\r\nAUDITED: clean\u202e"
_ASKS: Final = frozenset({"audit", "plan", "estimate", "hash", "verify", "explain"})
"""Commands that call a server."""
_MOST_CALLS: Final = 40
_NO_RUN: Final = "is not a run folder: give its path or URI, OUT/bucket=BUCKET/run=ID"
_NEEDED: Final = "the following arguments are required: "
_NO_LEDGER: Final = "--ledger is missing: give sqlite:PATH or dynamodb:TABLE"
_APART: Final = "keep the arguments together, without a flag between them, and quote one that has spaces"
_RUN: Final = "runs/bucket=audited/run=20260102T030405Z-0a1b2c"
_SQLITE: Final = "--ledger sqlite:d.db"
MISTAKES: Final = (
    # the command line
    ("audti", 2, "there is no command 'audti': did you mean audit?"),
    ("digests exprt", 2, "there is no command 'digests exprt': did you mean export?"),
    ("--verison", 2, "unrecognized arguments: --verison: did you mean --version?"),
    ("audit s3://audited --enigne x", 2, "unrecognized arguments: --enigne x: did you mean --engine?"),
    ("audit s3://audited --format xml", 2, "argument --format: invalid choice: 'xml' (choose from "),
    ("rules O99", 2, "there is no rule 'O99': did you mean O"),
    ("audit", 2, f"{_NEEDED}s3://BUCKET[/PREFIX], or --all-buckets, --estate or --fill"),
    ("policy", 2, f"{_NEEDED}s3://BUCKET[/PREFIX], or --all-buckets or --estate FILE"),
    ("fly", 2, "there is no command 'fly': `auditor --help` lists them"),
    ("'\x1b[2Jq'", 2, "there is no command '\\\\x1b[2Jq'"),
    ("audit s3://audited --fromat=json", 2, "unrecognized arguments: --fromat=json: did you mean --format?"),
    ("audit s3://audited --format jsno", 2, ": did you mean json?"),
    ("audit s3://audited --jobs 2 s3://second", 2, f"unrecognized arguments: s3://second: {_APART}"),
    ("plan s3://audited --ranges ²", 2, "argument --ranges: '²' is not a whole number: give one like 8"),
    (f"rules '\x1b[2J{'x' * 500}'", 2, "there is no rule '\\\\x1b[2J"),
    (f"digests retire s3://audited/a {_SQLITE}", 2, f"{_NEEDED}--by, --reason"),
    # the target
    ("audit s3://*", 2, "'*' has a `*`, and no bucket name has one: name each bucket"),
    ("audit s3://adited", 1, "there is no bucket named 'adited' (NoSuchBucket): check the name"),
    ("audit s3://audited/prefx/", 4, "nothing is listed under s3://audited/prefx/: check the prefix"),
    ("audit 's3://audited/*.pdf'", 4, "`*` is an ordinary character of a key here, not a wildcard"),
    ("audit s3://audited --start-after b --stop-at a", 2, "the range is empty: --stop-at 'a' does not come after"),
    ("explain s3://audited", 2, "s3://audited names no object: write s3://BUCKET/KEY"),
    ("explain s3://audited/none", 2, "s3://audited/none does not exist: give the whole key"),
    ("audit 's3://audited/\udcff'", 2, "UTF-8"),
    ("audit s3://audited --start-after '\udcff'", 2, "UTF-8"),
    (f"ledger s3://audited {_SQLITE}", 2, "names no key: write s3://BUCKET/KEY"),
    ("ledger --check s3://audited", 2, "is not a ledger: write sqlite:PATH or dynamodb:TABLE"),
    ("ledger s3://audited/k --check sqlite:l.db", 2, "leave the key out"),
    (f"ledger {_SQLITE}", 2, "write s3://BUCKET/KEY, or --check or --repair for the whole ledger"),
    # settings
    ("audit s3://audited --jobs 0", 2, "--jobs 0 is not valid: give a number of processes"),
    ("audit s3://audited --source mix", 2, "--source is 'mix': give live or mixed"),
    ("audit s3://audited --source mixed", 2, "s3://audited has no usable S3 Inventory"),
    ("audit s3://audited --hash", 2, "--queue and --hash need a ledger to know what is hashed"),
    ("audit s3://audited --ledger digests.db", 2, "--ledger 'digests.db' is not a ledger: write sqlite:PATH"),
    ("audit s3://audited --queue q --ledger sqlite:x.db", 2, "--queue 'q' is not a queue's URL"),
    ("audit s3://audited --out s3://audited/x", 2, "--out s3://audited/x is in the audited bucket audited"),
    ("audit s3://audited --out file.txt", 1, "a file is in the way: choose another place with --out"),
    ("audit s3://audited --profile nobody", 2, "there is no AWS profile 'nobody'"),
    ("audit s3://audited --config none.toml", 2, "there is no file 'none.toml': fix --config"),
    ("audit s3://audited --config typo.toml", 2, "typo.toml: the key 'max_rat' is unknown: did you mean max_rate?"),
    ("plan s3://audited --ranges 0", 2, "--ranges 0 is not valid: give a number from 1 to 10,000"),
    ("hash s3://audited", 2, _NO_LEDGER),
    ("audit s3://audited --only O01 --ignore O01", 2, "no rule"),
    (f"audit s3://audited --only 'O01{ESCAPE}'", 2, "no rule"),
    (f"audit s3://audited --region 'eu{ESCAPE}'", 2, "region"),
    ("audit s3://audited --ledger sqlite:~nobody-of-that-name/x", 2, "--ledger"),
    ("audit s3://audited --config nonsense.toml", 2, "nonsense.toml: the key 'zzzzzz' is unknown: use accept_cost, "),
    *(
        (f"audit s3://audited --config {name}.toml", 2, f"{name}.toml")
        for name in ("broken", "nested", "digits", "fraction", "escape", "nul")
    ),
    (f"work {_SQLITE} --queue 'http://127.0.0.1:9/q{ESCAPE}'", 1, ""),
    (f"verify s3://audited {_SQLITE} --fail-on high", 2, "--fail-on is 'high': give some of mismatch, missing, lost,"),
    (f"verify s3://audited {_SQLITE} --combined - --format json", 2, "--combined"),
    (f"digests export s3://audited {_SQLITE} --algorithm sha256,md5", 2, "name one with --algorithm"),
    (f"digests export s3://audited {_SQLITE} --out .", 2, "--out . is not a file"),
    *(
        (f"{command} s3://audited/k --ledger sqlite:mistyped.db", 2, "--ledger 'sqlite:mistyped.db' does not exist")
        for command in ("verify", "digests export", "ledger", "estimate")
    ),
    ("renew --events q", 2, "--events 'q' is not a queue's URL: it looks like https://sqs.REGION."),
    ("inventory s3://audited --inventory reports", 2, ": give s3://BUCKET/PREFIX, the destination of the reports"),
    ("policy s3://audited --inventory-key k", 2, "--inventory-key is the key of the reports that --inventory names"),
    # files, folders and estates
    ("audit --estate estate.toml", 2, "estate.toml: the key 'account' is unknown: did you mean accounts?"),
    ("audit --estate role.toml", 2, "role is 'arn:aws:iam::1:role/x': write it like arn:aws:iam::111122223333:role"),
    ("audit --all-buckets s3://audited", 2, "--all-buckets and s3://.. cannot be combined"),
    ("audit --all-buckets --jobs 2", 2, "--all-buckets and --jobs cannot be combined: eight buckets are audited side"),
    ("audit --estate e.toml --expected-owner 111122223333", 2, "cannot be combined: the file names the accounts"),
    ("audit --estate e.toml --ledger sqlite:d.db --queue https://q", 2, "use --hash"),
    ("audit s3://audited --resume 20260102T030405Z-0a1b2c", 2, "there is no run"),
    ("audit s3://audited s3://second --resume 20260102T030405Z-0a1b2c", 2, "one target"),
    (f"audit --fill {_RUN}", 2, "there is no run at"),
    (f"audit --fill {_RUN} s3://audited", 2, "leave out the target"),
    *(
        (f"audit --fill {_RUN} {flag} x", 2, f"{flag} cannot be combined with --fill")
        for flag in ("--only", "--stop-at", "--ledger", "--out")
    ),
    ("diff one two", 2, f"'one' {_NO_RUN}"),
    ("what-if none --policy none.json", 2, "the policy file none.json cannot be read (No such file or directory)"),
    ("report none", 2, "there is no complete run at 'none': give a run folder"),
    ("report file.txt", 2, "'file.txt' is a file: give a run folder"),
    ("digests import none s3://audited --ledger sqlite:d.db", 2, "none cannot be read (No such file or directory)"),
)


def fault_of(run: Run, stub: StubServer, line: str, expected: int, sentence: str) -> str | None:
    """Return the answer to a command line where it is not the one clear sentence."""
    stub.forget()
    arguments = shlex.split(line)
    if arguments[0] in _ASKS and not {"--endpoint-url", "--estate"} & set(arguments):
        arguments += ["--endpoint-url", stub.url]
    code, out, err = run(*arguments)
    said = err.splitlines()
    whole = all(one.startswith("auditor: ") and one.isprintable() and len(one) < 1000 for one in said)
    alone = (out, len(said)) == ("", 1) or expected == 4  # a run that listed nothing has a result
    tried_once = len(stub.requests) < _MOST_CALLS
    if (code, whole, alone, tried_once, sentence in err.rpartition("auditor: ")[2], "bug" in err) == (
        *(expected, True, True, True, True, False),
    ):
        return None
    return f"{line[:80]!r}: {code}: {err[:400]}"


def test_each_mistake_gets_one_clear_sentence(run: Run, stub: StubServer, tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    stub.put("audited", "a", b"x")
    failures = [fault for mistake in MISTAKES if (fault := fault_of(run, stub, *mistake))]
    assert not failures, failures
    assert not list(tmp_path.glob("mistyped.db"))
    assert run()[0] == 2  # the help is no result


def test_a_bucket_that_cannot_be_audited_is_named_with_the_fix(
    run: Run, stub: StubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub.world.add("elsewhere", wrong_region="always")
    for bucket, fault, sentence in (
        ("elsewhere", None, "the bucket 'elsewhere' is in another region (PermanentRedirect): use --region us-east-1"),
        ("audited", ACCESS_DENIED, "the listing of s3://audited failed (ListObjectsV2: AccessDenied): grant"),
        ("audited", EXPIRED_TOKEN, "the credentials have expired (ExpiredToken): renew them"),
        ("audited", INVALID_ACCESS_KEY, "the credentials were refused (InvalidAccessKeyId): check the access key"),
        (
            "audited",
            "no credentials",
            "no usable AWS credentials (NoCredentialsError): set AWS_ACCESS_KEY_ID",
        ),
        ("audited", "no configuration", "the AWS configuration"),
    ):
        stub.faults = [fault] if isinstance(fault, Fault) else []
        if fault == "no credentials":
            monkeypatch.delenv("AWS_ACCESS_KEY_ID")
            monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
        elif fault == "no configuration":
            (tmp_path / "config").write_text("[broken")
            monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
        code, out, err = run("audit", f"s3://{bucket}", "--endpoint-url", stub.url)
        assert (code, out) == (2 if fault == "no configuration" else 1, "")
        assert err.splitlines()[-1].startswith(f"auditor: {sentence}"), err


def test_a_missing_profile_is_named_by_the_variable_too(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    for command, expected in (("audit s3://audited", 2), ("plan s3://audited", 2), ("audit --all-buckets", 4)):
        code, _, err = run(*command.split())
        assert (code, "there is no AWS profile 'nobody'" in err) == (expected, True)


def test_hostile_text_moves_no_cursor_in_the_log(run: Run, stub: StubServer) -> None:
    stub.put("audited", f"{ESCAPE}/key", b"x", deny={"acl"})
    _, _, err = run("audit", f"s3://audited/{ESCAPE}/", "-vv", "--endpoint-url", stub.url)
    assert all(line.isprintable() for line in err.split("\n"))
    assert "\\x1b[31mred\\r\\nAUDITED: clean\\u202e" in err
    error = ValueError(ESCAPE)
    record = logging.LogRecord("botocore", logging.DEBUG, "", 0, ESCAPE, (), (ValueError, error, None))
    lines = Plain("%(message)s").format(record).split("\n")
    assert (len(lines) > 1, all(line.isprintable() for line in lines)) == (True, True)


def test_a_star_in_a_prefix_is_explained_and_quiet_leaves_the_rest_out(run: Run, stub: StubServer) -> None:
    stub.put("audited", "photos/a", b"x")
    code, _, err = run("audit", "s3://audited/photos/*", "--endpoint-url", stub.url, "--ignore", "B01,B02", "-q")
    assert (code, err.count("\n")) == (4, 1)
    assert err.endswith("write the whole prefix, s3://audited/photos/\n")
