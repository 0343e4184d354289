"""The mistakes that people make most: each gives one sentence that names the setting and the fix, and its exit code."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor.cli.help import make_parser
from tests.cli.conftest import Run
from tests.support.servers.stub import StubServer
from tests.support.servers.stub_faults import ACCESS_DENIED, EXPIRED_TOKEN, INVALID_ACCESS_KEY, Fault

AUDIT = ("audit", "s3://audited")
FILES = {"typo.toml": "max_rat = 3\n", "nonsense.toml": "zzzzzz = 3\n", "broken.toml": 'engine = "direct\n'}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("audit", "audited"), "'audited' is not an S3 URI: write s3://audited"),
        (
            ("audit", "s3://my bucket"),
            "'my bucket' is not a bucket name (' ' is in no name): write the target like s3://my-bucket",
        ),
        ((*AUDIT, "--engine", "boto4"), "--engine is 'boto4', which is not an engine: use direct or aioboto3 or boto3"),
        ((*AUDIT, "--max-rate", "fast"), "--max-rate is 'fast': give calls a second as a number above 0"),
        ((*AUDIT, "--fail-on", "bad"), "--fail-on is 'bad': give critical, high, medium, low, info or never"),
        ((*AUDIT, "--only", "O99"), "there is no rule 'O99': did you mean"),
        ((*AUDIT, "--jobs", "0"), "--jobs 0 is not valid: give a number of processes from 1 to 64"),
        ((*AUDIT, "--keep", "acl=3x"), "--keep: acl is '3x': give a time like 90d, 36h, 15m or 30s"),
        ((*AUDIT, "--source", "mix"), "--source is 'mix': give live or mixed"),
        ((*AUDIT, "--source", "mixed"), "s3://audited has no usable S3 Inventory: `auditor inventory s3://audited`"),
        ((*AUDIT, "--hash"), "--queue and --hash need a ledger to know what is hashed: add --ledger sqlite:PATH"),
        ((*AUDIT, "--ledger", "digests.db"), "--ledger 'digests.db' is not a ledger: write sqlite:PATH or dynamodb:"),
        ((*AUDIT, "--out", "s3://audited/x"), "--out s3://audited/x is in the audited bucket audited: choose"),
        (
            (*AUDIT, "--profile", "nobody"),
            "there is no AWS profile 'nobody': see `aws configure list-profiles`, and fix",
        ),
        ((*AUDIT, "--config", "gone.toml"), "there is no file 'gone.toml': fix --config"),
        ((*AUDIT, "--config", "typo.toml"), "typo.toml: the key 'max_rat' is unknown: did you mean max_rate?"),
        ((*AUDIT, "--config", "nonsense.toml"), "nonsense.toml: the key 'zzzzzz' is unknown: use accept_cost, "),
        ((*AUDIT, "--config", "broken.toml"), "broken.toml is not TOML: "),
        (("audit", "--estate", "gone.toml"), "there is no file 'gone.toml': fix --estate"),
        ((*AUDIT, "--inventory", "reports"), "--inventory is 'reports': give s3://BUCKET/PREFIX, the destination"),
        (("plan", "s3://audited", "--ranges", "0"), "--ranges 0 is not valid: give a number from 1 to 10,000"),
        (("renew", "--events", "name"), "--events 'name' is not a queue's URL: it looks like https://sqs.REGION."),
    ],
)
def test_a_wrong_setting_is_named_with_its_fix(
    run: Run, stub: StubServer, tmp_path: Path, arguments: tuple[str, ...], sentence: str
) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    code, out, err = run(*arguments, "--endpoint-url", stub.url)
    assert (code, out) == (2, "")
    (line,) = err.splitlines()
    assert line.startswith(f"auditor: {sentence}")


@pytest.mark.parametrize(
    ("bucket", "fault", "sentence"),
    [
        ("adited", None, "there is no bucket named 'adited' (NoSuchBucket): check the name"),
        ("elsewhere", None, "the bucket 'elsewhere' is in another region (PermanentRedirect): use --region us-east-1"),
        ("audited", ACCESS_DENIED, "the listing of s3://audited failed (ListObjectsV2: AccessDenied): grant"),
        ("audited", EXPIRED_TOKEN, "the credentials have expired (ExpiredToken): renew them"),
        ("audited", INVALID_ACCESS_KEY, "the credentials were refused (InvalidAccessKeyId): check the access key"),
    ],
)
def test_a_bucket_that_cannot_be_audited_is_named_with_the_fix(
    run: Run, stub: StubServer, bucket: str, fault: Fault | None, sentence: str
) -> None:
    stub.world.add("elsewhere", wrong_region="always")
    if fault is not None:
        stub.faults.append(fault)
    code, out, err = run("audit", f"s3://{bucket}", "--endpoint-url", stub.url)
    assert (code, out) == (1, "")
    assert err.splitlines()[-1].startswith(f"auditor: {sentence}")


@pytest.mark.parametrize("flag", ["--profile", "AWS_PROFILE"])
def test_a_missing_profile_is_named_by_the_flag_or_the_variable(
    run: Run, monkeypatch: pytest.MonkeyPatch, flag: str
) -> None:
    if flag == "AWS_PROFILE":
        monkeypatch.setenv(flag, "nobody")
    given = (flag, "nobody") if flag.startswith("--") else ()
    for command, expected in ((AUDIT, 2), (("plan", "s3://audited"), 2), (("audit", "--all-buckets"), 4)):
        code, _, err = run(*command, *given)
        assert code == expected
        assert "there is no AWS profile 'nobody'" in err


def test_without_credentials_the_sentence_says_where_they_come_from(
    run: Run, stub: StubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    code, _, err = run(*AUDIT, "--endpoint-url", stub.url)
    assert code == 1
    assert "no usable AWS credentials (NoCredentialsError): set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY" in err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["audti"], "did you mean audit?"),
        (["audit"], "the following arguments are required: s3://BUCKET[/PREFIX], or --all-buckets, --estate or --fill"),
        (["audit", "s3://b", "--enigne", "boto3"], "unrecognized arguments: --enigne boto3: did you mean --engine?"),
        (["audit", "s3://b", "--jobs", "two"], "argument --jobs: 'two' is not a whole number: give one like 8"),
        (["plan", "s3://b", "--ranges", "²"], "argument --ranges: '²' is not a whole number: give one like 8"),
        (["fix-kit", "RUN"], "the following arguments are required: --out"),
        (
            ["sql", "RUN", "SELECT", "1"],
            "unrecognized arguments: 1: keep the arguments together, without a flag between them,"
            " and quote one that has spaces",
        ),
        (
            ["audit", "s3://b", "--jobs", "2", "s3://c"],
            "unrecognized arguments: s3://c: keep the arguments together, without a flag between them,"
            " and quote one that has spaces",
        ),
    ],
)
def test_a_wrong_command_line_names_the_flag(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        make_parser().parse_args(arguments)
    assert ended.value.code == 2
    assert capsys.readouterr().err.endswith(f"{sentence}\n")
