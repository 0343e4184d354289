"""Make random cases from a seed, of the parts that people write into policies and ACLs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final

from msgspec.structs import replace

from auditor.model.bucket import BUCKET_OWNER_ENFORCED, AccessPoint, PublicAccessBlock
from auditor.model.object import (
    ALL_USERS,
    ANONYMOUS_OWNER,
    AUTHENTICATED_USERS,
    LOG_DELIVERY,
    Acl,
    Grant,
    Head,
    ObjectRef,
    Skipped,
    Unread,
)
from tests.verdict.oracle.recipe import (
    BY_THE_GUIDE,
    CURRENT,
    DENIED,
    FRIEND,
    FRIENDS,
    OTHER,
    OURS,
    OWN_ACL,
    OWNER,
    PLAIN,
    THEIRS,
    Recipe,
)
from tests.verdict.oracle.topics import (
    COMMON,
    COMMON_WITH_2026,
    KEYS_OF_2026,
    PARTS,
    POINT,
    ROLE,
    TOPICS,
    Tests,
)

SKIPPED: Final = Skipped("no selected rule needs it")
_KEYS: Final = ("dir/key", "home/bob/a.txt", "public/a", "444455556666/x")
KEYS_OF_2026_FROM: Final = 2_000_000
"""The first seed whose cases have the condition keys that AWS has had since 2023. Cases of lower seeds have none."""


def generate(seed: int) -> Recipe:
    """Return the random case of a seed."""
    maker = _Maker if seed < KEYS_OF_2026_FROM else _MakerOf2026
    return maker(Random(seed)).recipe()


class _Maker:
    def __init__(self, random: Random, topics: Mapping[str, Tests] = TOPICS, null_keys: str = "null_keys") -> None:
        self._random = random
        self._topics_of, self._null_keys = topics, PARTS[null_keys]
        self._topics = [self._topic() for _ in range(random.choice((1, 1, 2, 2, 3)))]

    def recipe(self) -> Recipe:
        rare = self._rare
        statements: list[dict[str, Any]] | None = [
            self._statement() for _ in range(self._pick((0, 1, 1, 2, 2, 2, 3, 4)))
        ]
        facts = self._facts()
        if rare(0.03):
            statements = None
        ref, versions = self._ref()
        return Recipe(
            statements=statements,
            version=self._pick(("2012-10-17",) * 9 + ("2008-10-17",)),
            facts=facts,
            acl=self._acl(),
            head=self._head(),
            ref=ref,
            trusted=tuple(self._random.sample(PARTS["trusted"], self._pick((0, 0, 1, 2, 4)))),
            versions=versions,
        )

    def _pick(self, items: Any) -> Any:
        return self._random.choice(items)

    def _rare(self, chance: float) -> bool:
        return self._random.random() < chance

    def _topic(self) -> str:
        topic: str = self._pick(COMMON if self._rare(0.4) else tuple(TOPICS))
        return topic

    # ---- the policy

    def _statement(self) -> dict[str, Any]:
        deny = self._rare(0.4)
        found: dict[str, Any] = {"Effect": "Deny" if deny else "Allow"}
        if deny and self._rare(0.15):
            found["NotPrincipal"] = self._pick(PARTS["not_principals"])
        else:
            found["Principal"] = "*" if deny and self._rare(0.6) else self._pick(PARTS["principals"])
        if self._rare(0.08):
            found["NotAction"] = self._pick(PARTS["not_actions"])
        else:
            found["Action"] = "s3:*" if deny and self._rare(0.5) else self._pick(PARTS["actions"])
        if self._rare(0.08):
            found["NotResource"] = self._pick(PARTS["not_resources"])
        else:
            found["Resource"] = self._pick(PARTS["resources"])
        if condition := self._condition():
            found["Condition"] = condition
        return found

    def _condition(self) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for _ in range(self._pick((0, 0, 1, 1, 1, 2, 2, 3))):
            if self._rare(0.06):
                operator, key, values = "Null", self._pick(self._null_keys), self._pick(("true", "false"))
            else:
                operator, key, values = self._pick(self._topics_of[self._pick(self._topics)])
            if self._rare(0.1):
                key = key.partition("/")[0].upper() + "".join(key.partition("/")[1:])
            found.setdefault(operator, {}).setdefault(key, values)
        return found

    # ---- the bucket

    def _facts(self) -> dict[str, Any]:
        pick, rare = self._pick, self._rare
        chances: list[tuple[float, str, Callable[[], Any]]] = [
            (
                0.2,
                "ownership",
                lambda: pick((BUCKET_OWNER_ENFORCED, BUCKET_OWNER_ENFORCED, "BucketOwnerPreferred", DENIED)),
            ),
            (0.15, "public_access_block", self._block),
            (0.15, "account_public_access_block", self._block),
            (0.5, "policy_is_public", lambda: BY_THE_GUIDE),
            (0.05, "request_payer", lambda: "Requester"),
            (0.03, "account", lambda: DENIED),
            (0.03, "own_id", lambda: pick((DENIED, FRIEND))),
            (0.03, "owner", lambda: pick((DENIED, SKIPPED))),
            (0.4, "access_points", self._points),
            (0.5, "key_policies", self._key_policies),
        ]
        return {name: make() for chance, name, make in chances if rare(chance)}

    def _block(self) -> Any:
        if self._rare(0.15):
            return self._pick((DENIED, SKIPPED))
        return PublicAccessBlock(*(self._rare(0.5) for _ in range(4)))

    def _points(self) -> Any:
        if "point" not in self._topics or self._rare(0.3):
            return self._pick((DENIED, SKIPPED))
        return tuple(self._point(name) for name in self._random.sample(("p", "q"), self._pick((1, 1, 2))))

    def _point(self, name: str) -> AccessPoint:
        arn = f"{POINT[:-1]}{name}"
        who = self._pick(("*", {"AWS": THEIRS}, {"AWS": OURS}, {"AWS": [THEIRS, FRIENDS]}))
        statement = {"Effect": "Allow", "Principal": who, "Action": "s3:*", "Resource": f"{arn}/object/*"}
        text = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        block = PublicAccessBlock(*(self._pick(((False,) * 4, (True,) * 4))))
        return AccessPoint(
            arn=arn,
            account=OURS,
            vpc=self._pick((None, None, "vpc-1")),
            public_access_block=block,
            policy=self._pick((text, text, text, "", DENIED)),
            policy_is_public=who == "*",
        )

    def _key_policies(self) -> Any:
        statements = [
            {"Effect": "Allow", "Principal": {"AWS": who}, "Action": "kms:*", "Resource": "*", **condition}
            for who, condition in (
                (f"arn:aws:iam::{OURS}:root", {}),
                *self._random.sample(
                    (
                        ("*", {}),
                        (THEIRS, {}),
                        (ROLE, {}),
                        ("*", {"Condition": {"StringEquals": {"kms:CallerAccount": THEIRS}}}),
                        ("*", {"Condition": {"StringEquals": {"kms:CallerAccount": OURS}}}),
                    ),
                    self._pick((0, 1, 1, 2)),
                ),
            )
        ]
        return {"key-1": self._pick((json.dumps({"Version": "2012-10-17", "Statement": statements}), DENIED))}

    # ---- the object

    def _acl(self) -> Acl | Unread | Skipped:
        if self._rare(0.06):
            refused: Unread | Skipped = self._pick((DENIED, SKIPPED))
            return refused
        if self._rare(0.5):
            return OWN_ACL
        owner = self._pick((OWNER,) * 8 + (OTHER, FRIEND, ANONYMOUS_OWNER))
        grantees = (ALL_USERS, ALL_USERS, AUTHENTICATED_USERS, OTHER, FRIEND, OWNER, LOG_DELIVERY, ANONYMOUS_OWNER)
        permissions = ("READ", "READ", "READ_ACP", "WRITE", "WRITE_ACP", "FULL_CONTROL")
        grants = [Grant(self._pick(grantees), self._pick(permissions)) for _ in range(self._pick((0, 1, 1, 1, 2)))]
        own = [Grant(owner, "FULL_CONTROL")] if self._rare(0.9) else []
        return Acl(owner, (*own, *grants))

    def _head(self) -> Head | Unread | Skipped:
        if self._rare(0.75):
            return PLAIN
        kms = replace(PLAIN, server_side_encryption=self._pick(("aws:kms", "aws:kms:dsse")), sse_kms_key_id="key-1")
        customer = replace(PLAIN, server_side_encryption=None, sse_customer_algorithm="AES256")
        found: Head | Unread | Skipped = self._pick(
            (kms, kms, kms, customer, DENIED, SKIPPED, Unread("HeadObject", "SSE-C"))
        )
        return found

    def _ref(self) -> tuple[ObjectRef, bool]:
        ref = replace(CURRENT, key=self._pick(_KEYS), owner=self._pick((OWNER, OWNER, OWNER, None, OTHER)))
        if self._rare(0.85):
            return ref, False
        return replace(ref, version_id="v1", is_latest=self._rare(0.5)), True


class _MakerOf2026(_Maker):
    """Makes cases with the condition keys that AWS has had since 2023, and with some others beside them."""

    def __init__(self, random: Random) -> None:
        super().__init__(random, {**TOPICS, **KEYS_OF_2026}, "null_keys_of_2026")

    def _topic(self) -> str:
        topic: str = self._pick(COMMON_WITH_2026 if self._rare(0.3) else tuple(KEYS_OF_2026))
        return topic

    def _facts(self) -> dict[str, Any]:
        facts = super()._facts()
        if "own tag" in self._topics:
            facts["abac"] = self._pick((True, True, True, False))
            facts["tags"] = self._pick(({"team": "red"}, {"team": "blue"}, {"team": None}))
        elif self._rare(0.85):
            facts["abac"] = self._pick((True, True, True, False, DENIED, SKIPPED))
            facts["tags"] = self._pick(({"team": "red"}, {"team": "red"}, {"team": "blue"}, {"team": None}, DENIED))
        return facts
