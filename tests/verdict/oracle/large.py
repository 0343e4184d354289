"""Make large policies from a seed: many statements of a few forms, with the names that a large company has."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any, Final

from auditor.model.bucket import BUCKET_OWNER_ENFORCED, AccessPoint, PublicAccessBlock
from auditor.model.object import ALL_USERS, AUTHENTICATED_USERS, Acl, Grant, ObjectRef
from tests.verdict.oracle.recipe import BY_THE_GUIDE, FRIEND, OTHER, OURS, OWN_ACL, OWNER, Recipe

MIDDLE: Final = (1_000, 4_000)
"""Sizes of policies in bytes, from and to, that the oracle judges, too."""
LARGE: Final = (8_000, 20_000)
"""Sizes of policies in bytes, from and to, for the laws that need no oracle."""

_TEAMS: Final = ("data", "web", "ops", "billing", "science", "audit", "media", "search")
_SERVICES: Final = ("cloudfront.amazonaws.com", "logging.s3.amazonaws.com", "s3.amazonaws.com", "sns.amazonaws.com")
_ANY: Final = "arn:aws:s3:::bucket/*"
Statement = dict[str, Any]


def generate_large(seed: int, sizes: tuple[int, int] = MIDDLE) -> Recipe:
    """Return the case of a seed, with a policy of at least the first and about the second size in bytes at most."""
    return _Estate(Random(f"large {sizes} {seed}"), sizes).recipe()


class _Estate:
    def __init__(self, random: Random, sizes: tuple[int, int]) -> None:
        self._random = random
        self._size = random.randint(*sizes)
        wide = self._size > MIDDLE[1]
        self._most = random.choice((4, 8, 20, 60) if wide else (2, 3, 5, 8))
        """Largest number of values of one condition or principal."""
        self._accounts = [f"{random.randrange(2 * 10**11, 10**12)}" for _ in range(random.randint(2, 3 * self._most))]
        self._organizations = [f"o-{random.randrange(16**8):08x}" for _ in range(random.choice((1, 1, 2, 3)))]
        self._networks = [self._network() for _ in range(random.randint(1, 2 * self._most))]
        self._endpoints = [f"vpce-{random.randrange(16**8):08x}" for _ in range(random.randint(1, self._most))]
        self._vpcs = [f"vpc-{random.randrange(16**8):08x}" for _ in range(random.choice((1, 2, 3)))]
        forms = [
            *(self._to_accounts, self._to_roles, self._to_networks, self._to_organization, self._to_endpoints),
            *(self._to_service, self._deny_elsewhere, self._deny_insecure, self._deny_outside, self._to_team_tag),
            *(self._of_other_actions, self._deny_others, self._to_named_roles, self._to_home),
            *(self._deny_but_actions, self._deny_but_folder, self._to_bucket_owner, self._to_referer, self._to_points),
        ]
        self._forms: list[Callable[[], Statement]] = random.sample(forms, random.choice((3, 4, 5, 6)))

    def recipe(self) -> Recipe:
        statements: list[Statement] = []
        while len(json.dumps(statements)) < self._size:
            statements.append(self._pick(self._forms)())
        facts: dict[str, Any] = {}
        for chance, name, make in (
            (0.5, "policy_is_public", lambda: BY_THE_GUIDE),
            (0.3, "ownership", lambda: BUCKET_OWNER_ENFORCED),
            (0.1, "public_access_block", lambda: PublicAccessBlock(restrict_public_buckets=True)),
            (0.3, "access_points", lambda: (self._point(),)),
        ):
            if self._random.random() < chance:
                facts[name] = make()
        key = self._pick((f"{self._pick(_TEAMS)}/2026/x", f"home/{self._pick(_TEAMS)}/a", "public/a", "x"))
        return Recipe(
            statements=statements,
            facts=facts,
            acl=self._acl(),
            ref=ObjectRef(key, "e", 1, "2026-01-02T03:04:05Z", owner=OWNER),
            trusted=tuple(self._trusted()),
        )

    # ---- names

    def _pick(self, items: Any) -> Any:
        return self._random.choice(items)

    def _some(self, items: list[str]) -> list[str]:
        return self._random.sample(items, self._random.randint(1, min(len(items), self._most)))

    def _network(self) -> str:
        a, b, length = self._random.randrange(1, 250), self._random.randrange(256), self._pick((16, 24, 24, 28, 32))
        c, d = (0 if length == 16 else self._random.randrange(256)), 0
        first = self._pick((52, 54, 203, 10))
        return (
            f"{first}.{a}.{b}.{c if length == 32 else d}/{length}" if length > 16 else f"{first}.{a}.{c}.{d}/{length}"
        )

    def _resource(self) -> Any:
        folders = [f"arn:aws:s3:::bucket/{team}/*" for team in _TEAMS]
        return self._pick((_ANY, _ANY, self._pick(folders), self._some(folders), ["arn:aws:s3:::bucket", _ANY]))

    def _trusted(self) -> list[str]:
        found = self._random.sample(self._accounts, self._random.randint(0, len(self._accounts)))
        for names in (self._organizations, self._networks, self._endpoints):
            found += self._some(names) if self._random.random() < 0.4 else []
        return found if self._random.random() < 0.5 else []

    def _acl(self) -> Acl:
        grantee = self._pick((OWNER, OWNER, OWNER, ALL_USERS, AUTHENTICATED_USERS, OTHER, FRIEND))
        return OWN_ACL if grantee == OWNER else Acl(OWNER, (*OWN_ACL.grants, Grant(grantee, "READ")))

    def _point(self) -> AccessPoint:
        arn = f"arn:aws:s3:eu-central-1:{OURS}:accesspoint/shared"
        allow = {"Effect": "Allow", "Principal": {"AWS": self._some(self._accounts)}, "Action": "s3:GetObject"}
        policy = json.dumps({"Statement": [{**allow, "Resource": f"{arn}/object/*"}]})
        return AccessPoint(
            arn=arn,
            account=OURS,
            vpc=self._pick((None, None, self._vpcs[0])),
            public_access_block=PublicAccessBlock(),
            policy=policy,
            policy_is_public=False,
        )

    # ---- forms of statements

    def _allow(self, principal: Any = "*", resource: Any = None, action: Any = None, **condition: Any) -> Statement:
        action = action or self._pick(("s3:GetObject", "s3:GetObject", "s3:Get*", ["s3:GetObject", "s3:PutObject"]))
        found = {"Effect": "Allow", "Principal": principal, "Action": action, "Resource": resource or self._resource()}
        return {**found, **({"Condition": condition} if condition else {})}

    def _deny(self, **condition: Any) -> Statement:
        found = {"Effect": "Deny", "Principal": "*", "Action": self._pick(("s3:*", "s3:*", "s3:GetObject*"))}
        return {**found, "Resource": self._resource(), "Condition": condition}

    def _to_accounts(self) -> Statement:
        return self._allow({"AWS": self._some(self._accounts)})

    def _to_roles(self) -> Statement:
        arns = [f"arn:aws:iam::{one}:role/{self._pick(_TEAMS)}" for one in self._some(self._accounts)]
        return self._allow({"AWS": arns})

    def _to_named_roles(self) -> Statement:
        patterns = [f"arn:aws:iam::{one}:role/{self._pick(_TEAMS)}-*" for one in self._some(self._accounts)]
        return self._allow(ArnLike={"aws:PrincipalArn": patterns})

    def _to_networks(self) -> Statement:
        return self._allow(IpAddress={"aws:SourceIp": self._some(self._networks)})

    def _to_organization(self) -> Statement:
        limits = {"aws:PrincipalOrgID": self._some(self._organizations)}
        if self._random.random() < 0.3:
            return self._allow(StringEquals={**limits, "aws:SourceVpce": self._some(self._endpoints)})
        return self._allow(StringEquals=limits)

    def _to_endpoints(self) -> Statement:
        key, names = self._pick((("aws:SourceVpce", self._endpoints), ("aws:SourceVpc", self._vpcs)))
        return self._allow(StringEquals={key: self._some(names)})

    def _to_service(self) -> Statement:
        account = self._pick(self._accounts)
        source = {
            "aws:SourceArn": f"arn:aws:{self._pick(('sns', 'cloudfront'))}:eu-central-1:{account}:{self._pick(_TEAMS)}"
        }
        owner = {"StringEquals": {"aws:SourceAccount": account}} if self._random.random() < 0.5 else {}
        return self._allow({"Service": self._pick(_SERVICES)}, ArnLike=source, **owner)

    def _to_team_tag(self) -> Statement:
        team = self._pick(_TEAMS)
        tags = {"aws:PrincipalTag/team": team, "aws:PrincipalOrgID": self._pick(self._organizations)}
        return self._allow(resource=f"arn:aws:s3:::bucket/{team}/*", StringEquals=tags)

    def _to_home(self) -> Statement:
        principal = {"AWS": self._some(self._accounts)}
        return self._allow(principal, resource="arn:aws:s3:::bucket/home/${aws:username}/*")

    def _to_bucket_owner(self) -> Statement:
        return self._allow(
            {"AWS": [f"arn:aws:iam::{OURS}:role/{team}" for team in _TEAMS[: self._most]]}, action="s3:*"
        )

    def _to_referer(self) -> Statement:
        return self._allow(
            resource="arn:aws:s3:::bucket/public/*",
            StringLike={"aws:Referer": [f"https://{team}.example.com/*" for team in _TEAMS[: self._most // 2 + 1]]},
        )

    def _to_points(self) -> Statement:
        return self._allow(action="*", StringEquals={"s3:DataAccessPointAccount": OURS})

    def _of_other_actions(self) -> Statement:
        action = self._pick(("s3:ListBucket", ["s3:PutObject", "s3:DeleteObject"], "s3:GetBucketLocation"))
        return self._allow({"AWS": self._some(self._accounts)}, action=action)

    def _deny_insecure(self) -> Statement:
        tls = {"NumericLessThan": {"s3:TlsVersion": "1.2"}}
        return self._deny(**self._pick(({"Bool": {"aws:SecureTransport": "false"}}, tls)))

    def _deny_elsewhere(self) -> Statement:
        places: dict[str, Any] = {"NotIpAddress": {"aws:SourceIp": self._some(self._networks)}}
        if self._random.random() < 0.6:
            places["StringNotEquals"] = {"aws:SourceVpce": self._some(self._endpoints)}
        if self._random.random() < 0.3:
            places["ArnNotLike"] = {"aws:PrincipalArn": f"arn:aws:iam::{OURS}:role/*"}
        return self._deny(**places)

    def _deny_outside(self) -> Statement:
        services = {"BoolIfExists": {"aws:PrincipalIsAWSService": "false"}} if self._random.random() < 0.5 else {}
        return self._deny(StringNotEqualsIfExists={"aws:PrincipalOrgID": self._some(self._organizations)}, **services)

    def _deny_others(self) -> Statement:
        kept = [f"arn:aws:iam::{one}:root" for one in (OURS, *self._some(self._accounts))]
        found = {"Effect": "Deny", "NotPrincipal": {"AWS": kept}, "Action": "s3:*"}
        return {**found, "Resource": f"arn:aws:s3:::bucket/{self._pick(_TEAMS)}/*"}

    def _deny_but_actions(self) -> Statement:
        found = {"Effect": "Deny", "Principal": {"AWS": self._some(self._accounts)}}
        return {**found, "NotAction": ["s3:GetObject", "s3:List*"], "Resource": self._resource()}

    def _deny_but_folder(self) -> Statement:
        found = {"Effect": "Deny", "Principal": {"AWS": self._some(self._accounts)}, "Action": "s3:*"}
        return {**found, "NotResource": [f"arn:aws:s3:::bucket/{self._pick(_TEAMS)}/*", "arn:aws:s3:::bucket/public/*"]}
