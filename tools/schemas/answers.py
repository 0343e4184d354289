"""The JSON Schemas of answers that no dataclass has: of `diff`, `explain`, `fix-kit`, `inventory`, `plan`, `what-if`
and `digests history`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from auditor.audit.plan_ranges import RangePlan
from auditor.ledger.base import Soundness, What
from auditor.ledger.manifests import export as history
from auditor.model.access import Verdict
from auditor.model.bucket import Semantics
from auditor.model.finding import Severity
from auditor.model.summary import ChangeKind, Changes
from auditor.offline.explanation import ReasonGroup
from auditor.offline.fix_kit.readiness import Readiness
from auditor.offline.probe.probe_result import ObjectResult
from auditor.offline.probe.stranger_claims import Asked
from auditor.offline.what_if_report import Move
from tools.schemas.json_schema import COUNTS, MAYBE_TEXT, RUN, TEXT, TEXTS, WHOLE, YES_OR_NO, Schema, SchemaMaker


def with_members(description: str, members: Mapping[str, Schema], optional: tuple[str, ...] = ()) -> Schema:
    """Return the schema of an object that has all these members, apart from the optional ones, and may have more."""
    required = [name for name in members if name not in optional]
    return {
        "description": description,
        "type": "object",
        "properties": dict(members),
        "required": required,
        "additionalProperties": True,
    }


def diff(maker: SchemaMaker) -> Schema:
    """`auditor diff --format json`."""
    return with_members(
        "The changes between two runs, counted.", {"old": RUN, "new": RUN, "changes": maker.of(Changes)}
    )


def diff_line(maker: SchemaMaker) -> Schema:
    """A line of `auditor diff --format jsonl`."""
    verdict = maker.of(Verdict | None)
    members = {
        "kind": maker.of(ChangeKind),
        "of": {"enum": ["verdict", "finding"]},
        "key": {"description": "null for a finding on the bucket.", **MAYBE_TEXT},
        "version_id": MAYBE_TEXT,
        "before": {"description": "The verdict in the old run.", **verdict},
        "after": {"description": "The verdict in the new run.", **verdict},
        "rule": MAYBE_TEXT,
        "severity": maker.of(Severity | None),
        **dict.fromkeys(("grantee", "permission", "fingerprint", "since"), MAYBE_TEXT),
    }
    return with_members("One change between two runs, of an object's verdict or of a finding.", members)


def history_line(maker: SchemaMaker) -> Schema:
    """A line of `auditor digests history --format json-lines`."""
    said: dict[str, Schema] = {
        "at": {"description": "The time, in ISO 8601 in UTC.", **TEXT},
        "event": {"enum": list(get_args(What))},
        "premis_event_type": {"description": "The type of the event in PREMIS; null if it has none.", **MAYBE_TEXT},
        "size": {"description": "Size in bytes.", **WHOLE, "type": ["integer", "null"]},
        "seal": {"enum": list(get_args(Soundness))},
        "detail": {
            "type": "object",
            "additionalProperties": {"description": "A further fact of the line by its name."},
        },
    }
    members = {name: said.get(name, TEXT if name == "key" else MAYBE_TEXT) for name in history.COLUMNS}
    return with_members("A line of the history of a key in the ledger.", members)


def explanation(maker: SchemaMaker) -> Schema:
    """A line of `auditor explain --format json`."""
    groups = {group.name.lower(): {"description": f"Sentences: {group}.", **TEXTS} for group in ReasonGroup}
    members: dict[str, Schema] = {
        "bucket": TEXT,
        "key": TEXT,
        "version_id": MAYBE_TEXT,
        "run": {
            "description": "The run that the access comes from; null if the object was read just now.",
            **MAYBE_TEXT,
        },
        "renewed": {
            "description": "When the object was read after the run, because of an event; null if it was not.",
            **MAYBE_TEXT,
        },
        "verdict": maker.of(Verdict),
        "audience": TEXTS,
        "reasons": TEXTS,
        **groups,
        "not_looked_at": TEXTS,
    }
    return with_members("The access to one object, and its reasons.", members)


def inventory(maker: SchemaMaker) -> Schema:
    """`auditor inventory --format json`."""
    document: Schema = {"type": "object", "additionalProperties": {"description": "A member by its name in the API."}}
    members: dict[str, Schema] = {
        "bucket": TEXT,
        "id": {"description": "The ID of the configuration.", **TEXT},
        "configuration": {"description": "An InventoryConfiguration of the S3 API.", **document},
        "destination_policy": {"description": "A bucket policy for the destination.", **document},
        "dollars_per_billion": {"description": "The price of a report on 10^9 objects.", "type": "number"},
        "placeholders": {"description": "Words in the documents that the user has to replace.", **TEXTS},
    }
    return with_members("The S3 Inventory to set up for a bucket.", members)


def plan(maker: SchemaMaker) -> Schema:
    """`auditor plan --format json`."""
    calls = with_members("Numbers of calls.", {"list": WHOLE})
    keys = {"description": "Number of keys, or of versions, in all ranges.", **WHOLE}
    target = with_members("The target.", {"bucket": TEXT, "prefix": TEXT, "versions": YES_OR_NO})
    return maker.members(RangePlan, extra={"target": target, "keys": keys, "calls": calls})


def what_if(maker: SchemaMaker) -> Schema:
    """`auditor what-if --format json`."""
    members: dict[str, Schema] = {
        "run": RUN,
        "target": TEXT,
        "complete": {"description": "true if the run reached the end of its listing.", **YES_OR_NO},
        "change": {"description": "The change in words.", **TEXTS},
        **_effect(maker),
        "remarks": TEXTS,
    }
    return with_members("The effect of a change of the bucket on the objects of a run.", members)


def _effect(maker: SchemaMaker) -> dict[str, Schema]:
    """Return the members that count the effect of a change."""
    sample = with_members("One object.", {"key": TEXT, "version_id": MAYBE_TEXT})
    verdict = maker.of(Verdict)
    moved: dict[str, Schema] = {
        **dict.fromkeys(Move._fields, verdict),
        "objects": WHOLE,
        "prefixes": {"description": "Number of objects by the first folder of their keys.", **COUNTS},
        "samples": {"description": "The first objects.", "type": "array", "items": sample},
    }
    unsure = with_members(
        "The objects whose verdict after the change is unknown.",
        {"objects": WHOLE, "unknown_before": WHOLE, "causes": COUNTS},
    )
    return {
        "objects": WHOLE,
        "changed": WHOLE,
        "new_exposure": {"description": "Number of objects that the change opens to somebody.", **WHOLE},
        "narrower": {"description": "Number of objects that it closes to somebody, and opens to nobody.", **WHOLE},
        "not_predictable": unsure,
        "moves": {"type": "array", "items": with_members("Objects with the same verdicts before and after.", moved)},
        "gains": {"description": "Number of objects by each audience that gains access.", **COUNTS},
        "loses": {"description": "Number of objects by each audience that loses access.", **COUNTS},
    }


def fix_kit(maker: SchemaMaker) -> Schema:
    """`auditor fix-kit --format json`, and kit.json."""
    ready = with_members(
        "The readiness for ACLs to be turned off.", {"state": maker.of(Readiness), "blocks": TEXTS, "unknown": TEXTS}
    )
    job = with_members("A job of S3 Batch Operations.", {"request": TEXT, "manifest": TEXT, "objects": WHOLE})
    jobs: Schema = {"type": "array", "items": job}
    policy: dict[str, Schema] = {
        "written": YES_OR_NO,
        "bytes": {"type": ["integer", "null"], "minimum": 0},
        "statements_added": WHOLE,
        "reasons": {"description": "Why the kit has no policy.", **TEXTS},
        "keys_left_out": TEXTS,
        "grants_left_out": {"description": "Number of objects by the reason of a grant left out.", **COUNTS},
    }
    members: dict[str, Schema] = {
        "run": RUN,
        "target": TEXT,
        "out": {"description": "The kit's directory.", **TEXT},
        "files": TEXTS,
        "readiness": with_members("The readiness now, and after the kit.", {"now": ready, "after_kit": ready}),
        "policy": with_members("The policy of the kit.", policy),
        "jobs": jobs,
        "exposed_objects_kept": {"description": "Number of exposed objects that keep their ACL, by reason.", **COUNTS},
        "restore": with_members("The jobs that bring ACLs back.", {"jobs": jobs, "others": WHOLE}),
        "keys": with_members(
            "The jobs that put objects under an allowed KMS key (E03).",
            {"jobs": jobs, "kept": {"description": "Number of objects that keep their key, by reason.", **COUNTS}},
        ),
        "what_if": {"description": "The commands that predict the effect of the policy and of no ACLs.", **TEXTS},
        "remarks": TEXTS,
    }
    return with_members("The files that prepare the repair of a bucket.", members)


def probe(maker: SchemaMaker) -> Schema:
    """`auditor probe --format json`."""
    disagreement = with_members(
        "An answer that contradicts a verdict.",
        {
            "verdict": maker.of(Verdict),
            "call": maker.of(Asked),
            "signed": {"description": "true if the foreign account asked.", **YES_OR_NO},
            "open": {"description": "true if the verdict says that S3 answers.", **YES_OR_NO},
            "answers": {"description": "The HTTP statuses.", **TEXTS},
        },
    )
    by_name: Schema = {"type": "object", "additionalProperties": COUNTS}
    members: dict[str, Schema] = {
        "auditor": {"description": "The version of the auditor.", **TEXT},
        "semantics": maker.of(Semantics),
        "groups": WHOLE,
        "sampled": {"description": "Number of objects that were chosen.", **WHOLE},
        "compared": WHOLE,
        **dict.fromkeys((one.value for one in ObjectResult), WHOLE),
        "unsteady": {"description": "Number of objects whose answers differed, or that got none.", **WHOLE},
        "by_verdict": {"description": "Number of objects by result and verdict.", **by_name},
        "left_out": {"description": "Number of objects of which a claim was not tried, by cause.", **COUNTS},
        "answers": {"description": "Number of answers by stranger and HTTP status.", **by_name},
        "disagreements": {"type": "array", "items": disagreement},
    }
    return with_members("The verdicts of a run compared with S3's answers to strangers.", members)


def what_if_line(maker: SchemaMaker) -> Schema:
    """A line of the file of `auditor what-if --keys`."""
    verdict = maker.of(Verdict)
    access = with_members("The access to the object.", {"verdict": verdict, "audience": TEXTS, "reasons": TEXTS})
    members: dict[str, Schema] = {
        "key": TEXT,
        "version_id": MAYBE_TEXT,
        "before": access,
        "after": access,
        "gains": TEXTS,
        "loses": TEXTS,
        "new_exposure": YES_OR_NO,
        "predictable": YES_OR_NO,
    }
    return with_members("An object that the change moves, or whose verdict it makes unpredictable.", members)
