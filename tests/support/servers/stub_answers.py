"""Answer a call: S3's checks first, then the call itself."""

from __future__ import annotations

from collections.abc import Callable
from email.utils import formatdate
from http import HTTPStatus
from typing import Final

from tests.support.servers.http_server import PIECE, Answer
from tests.support.servers.stub_buckets import ACCOUNT_CALLS, BUCKET_CALLS, hollow, odd_reply
from tests.support.servers.stub_calls import LISTINGS, OBJECT_READS, Call, Refused, Reply
from tests.support.servers.stub_faults import Fault, Kind
from tests.support.servers.stub_listings import list_objects, list_versions
from tests.support.servers.stub_objects import get_acl, get_object, head_object
from tests.support.servers.world import StubBucket, World

CALLS: Final[dict[str, Callable[[World, StubBucket, Call], Reply]]] = {
    **BUCKET_CALLS,
    "ListObjectsV2": list_objects,
    "ListObjectVersions": list_versions,
    "HeadObject": head_object,
    "GetObject": get_object,
    "GetObjectAcl": get_acl,
}


def reply_of(world: World, call: Call) -> Reply:
    """The answer of a world where nothing goes wrong."""
    try:
        return _answer(world, call)
    except Refused as refused:
        return refused.reply(call)


def framed(reply: Reply, call: Call) -> Answer:
    """The answer with its head, as it is sent."""
    item, body = reply.item, reply.body
    if item is not None and reply.length <= PIECE:
        body = item.read(reply.start, reply.length)
        item = None
    headers = {"Server": "AmazonS3", "x-amz-request-id": call.request_id, "x-amz-id-2": "stub", **reply.headers}
    if body:
        headers.setdefault("Content-Type", "application/octet-stream")
    if body or item is not None or call.method != "HEAD":
        headers.setdefault("Content-Length", str(len(body) if item is None else reply.length))
    headers.setdefault("Date", formatdate(usegmt=True))
    if call.headers.get("connection", "").lower() == "close":
        headers["Connection"] = "close"
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    head = f"HTTP/1.1 {reply.status} {HTTPStatus(reply.status).phrase}\r\n{lines}\r\n".encode()
    if call.method == "HEAD":
        return Answer(head)
    return Answer(head, body) if item is None else Answer(head, item.read, reply.start, reply.length)


def spoilt(reply: Reply, fault: Fault, call: Call) -> Reply:
    """The answer after a fault that changes it."""
    if reply.status >= 300 or fault.kind not in {Kind.EMPTY, Kind.INCOMPLETE, Kind.TRUNCATED}:
        return reply
    if call.operation in {"HeadObject", "HeadBucket"}:
        return Reply(reply.status)
    if fault.kind is Kind.INCOMPLETE and reply.item is None:
        return hollow(call)
    body = reply.body if reply.item is None else reply.item.read(reply.start, reply.length)
    return Reply(reply.status, reply.headers, body[: len(body) // 2] if fault.kind is Kind.TRUNCATED else b"")


def vanish(world: World, call: Call) -> None:
    """Remove what the call is about to read."""
    bucket = world.buckets.get(call.bucket)
    if bucket is not None and call.key:
        bucket.objects.remove(call.key, call.version_id)


def _answer(world: World, call: Call) -> Reply:
    account_call = ACCOUNT_CALLS.get(call.operation)
    if account_call is not None:
        odd = world.odd.get(call.operation)
        return account_call(world, call) if odd is None else odd_reply(odd, call)
    if call.operation == "InvalidURI":
        raise Refused(400, "InvalidURI", "Couldn't parse the specified URI.")
    do = CALLS.get(call.operation)
    if do is None:
        raise Refused(501, "NotImplemented", "The stub does not know this call")
    bucket = world.buckets.get(call.bucket)
    if bucket is None:
        details = (("BucketName", call.bucket),)
        raise Refused(404, "NoSuchBucket", "The specified bucket does not exist", details=details)
    _admit(bucket, call)
    odd = bucket.odd.get(call.operation)
    return do(world, bucket, call) if odd is None else odd_reply(odd, call)


def _admit(bucket: StubBucket, call: Call) -> None:
    """Refuse calls for another region or owner, and calls that nobody agreed to pay for."""
    signed = call.signed_region
    elsewhere = bucket.wrong_region == "signature" and signed is not None and signed != bucket.region
    if elsewhere or bucket.wrong_region == "always":
        endpoint = f"{bucket.name}.s3.{bucket.region}.amazonaws.com"
        raise Refused(
            301,
            "PermanentRedirect",
            "The bucket you are attempting to access must be addressed using the specified endpoint.",
            {"x-amz-bucket-region": bucket.region},
            (("Endpoint", endpoint), ("Bucket", bucket.name)),
        )
    if call.headers.get("x-amz-expected-bucket-owner", bucket.account) != bucket.account:
        raise Refused(403, "AccessDenied", "Access Denied")
    charged = call.operation in LISTINGS or call.operation in OBJECT_READS
    if charged and bucket.request_payer == "Requester" and call.headers.get("x-amz-request-payer") != "requester":
        raise Refused(403, "AccessDenied", "Access Denied")
