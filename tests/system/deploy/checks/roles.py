"""The actions that auditor.aws.iam.roles allows the deployed functions, with every parameter given."""

from __future__ import annotations

from auditor.aws.iam import roles
from auditor.aws.iam.roles import Deployment
from auditor.model.target import Target

_KEY = "arn:aws:kms:eu-central-1:111122223333:key/0a1b"
_FILES = "arn:aws:elasticfilesystem:eu-central-1:111122223333:access-point/fsap-0a1b"
_ROLES = {
    "audit": roles.audit_role_policy,
    "hashing": roles.hashing_role_policy,
    "verify": roles.verify_role_policy,
}


def allowed(function: str, level: str = "fixity", *, divides: bool = True) -> set[str]:
    """The IAM actions of the function's role at a level. divides: with a state machine."""
    deployment = Deployment(
        level=level,
        out="s3://reports/audits",
        ledger="dynamodb:digests",
        audited_keys=[_KEY],
        key_policies=level != "exposure",
        reports_key=_KEY,
        divides=divides,
        in_vpc=True,
        file_system=_FILES,
        inventory="s3://inventories/night",
        inventory_key=_KEY,
        event_bus="arn:aws:events:eu-west-1:123456789012:event-bus/ours",
    )
    policy = _ROLES[function]([Target("photos")], deployment, "aws")
    return {action for one in policy["Statement"] if one["Effect"] == "Allow" for action in one["Action"]}
