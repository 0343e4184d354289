"""Find the ways by which one concrete requester reaches an object: the machine of a probe, unsigned or with a name.

The verdict is about everybody. A probe is one requester: it has one address, it sends no header that a policy asks for,
and it speaks TLS or not. A way counts as sure only if no fact that nobody knows can close it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import product
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from auditor.model.access import AudienceKind, Reason
from auditor.model.bucket import BUCKET_OWNER_ENFORCED, BucketFacts
from auditor.model.object import PUBLIC_GROUPS, Acl, Head, ObjectRef, Skipped, Unread
from auditor.verdict.answers import Kinds, unknowns_of
from auditor.verdict.compiled import CompiledBucket
from auditor.verdict.documents import CONNECTION
from auditor.verdict.domains import FixedValues
from auditor.verdict.entry import Case, Door
from auditor.verdict.identities import CONNECTIONS
from auditor.verdict.joined import bits, outcomes_of
from auditor.verdict.object_facts import AclView, EncryptionFacts, views
from auditor.verdict.principals import ANONYMOUS, ANY_ACCOUNT, Party, party_of
from auditor.verdict.requesters import Crowd, Requester
from auditor.verdict.resources import KeyClass
from auditor.verdict.steps import KeySteps, OutOfStepsError, Steps, TooComplexError
from auditor.verdict.trust import Trust
from auditor.verdict.values import truth_vectors
from auditor.verdict.ways import ALL_WAYS, VERSION_WAYS, WAYS, WRITE_ACP
from auditor.verdict.worlds import World

MOST_REQUESTS: Final = 64
"""Largest number of combinations of unknown values that are tried for one requester. Beyond it no way is sure."""

MOST_REMEMBERED: Final = 4096
"""Largest number of kinds of objects whose ways are cached."""

_ADDRESS: Final = "aws:sourceip"
_KEY_POLICIES: Final = Skipped("a HEAD tells nothing about a KMS key")


class Vantage(Struct, frozen=True, kw_only=True):
    """The requester that a probe is. address: the IP address from which its requests reach S3; None if it is not known.
    tls: True if they are encrypted. signer: ARN of the principal that signs, or a canonical ID; None for unsigned
    requests.
    """

    address: str | None = None
    tls: bool = True
    signer: str | None = None

    @property
    def party(self) -> Party:
        """The party of the verdict that the requester is."""
        if self.signer is None:
            return ANONYMOUS
        return party_of("AWS", self.signer) or Party(AudienceKind.CANONICAL_ID, self.signer, canonical=self.signer)


class WaysIn(Struct, frozen=True):
    """The ways by which a vantage reaches an object, as sets of ways.

    sure: open whatever the facts are that nobody knows. possible: open in some case. placed: open from another place,
    or from some addresses, if the address is not known. elsewhere: open to the same kind of stranger from any place,
    with any header. inside: sure because of the address, and not sure from another one.
    """

    sure: int = 0
    possible: int = 0
    placed: int = 0
    elsewhere: int = 0
    inside: int = 0


class VantageJudge:
    """Finds the ways of a vantage to each object of a bucket. trusted, versions, now: as for VerdictJudge."""

    def __init__(self, facts: BucketFacts, trusted: Iterable[str], versions: bool, now: datetime | None) -> None:
        self._facts = replace(facts, key_policies=_KEY_POLICIES)
        self._versions = versions
        self._known: dict[tuple[object, ...], WaysIn | None] = {}
        self._bucket: CompiledBucket | None = None
        with suppress(OutOfStepsError):
            self._bucket = CompiledBucket(self._facts, Trust.of(trusted), now)

    def ways(
        self, vantage: Vantage, ref: ObjectRef, acl: Acl | Unread | Skipped, head: Head | Unread | Skipped
    ) -> WaysIn | None:
        """Return the ways of the vantage to one object; None if the policies are too large to judge exactly."""
        if self._bucket is None:
            return None
        key = EncryptionFacts.of(head, self._facts.semantics)
        owner = None if isinstance(acl, Acl) and acl.owner else ref.owner
        covered = self._bucket.document.class_of(ref.key)
        kind = (vantage, covered, acl, owner, key, ref.is_latest or not self._versions)
        if kind not in self._known:
            if len(self._known) >= MOST_REMEMBERED:
                self._known.clear()
            acls, cause = views(acl, owner, self._facts)
            try:
                asked = _Asking(self._bucket, covered, acls, key, kind[-1] is True, cause, vantage)
                self._known[kind] = asked.ways()
            except (OutOfStepsError, TooComplexError):
                self._known[kind] = None
        return self._known[kind]


class _Asking:
    """Asks for the objects of one kind by which ways the vantage gets in. Raises OutOfStepsError."""

    def __init__(
        self,
        bucket: CompiledBucket,
        covered: KeyClass,
        acls: Sequence[AclView],
        key: EncryptionFacts,
        latest: bool,
        cause: Reason,
        vantage: Vantage,
    ) -> None:
        self._bucket = bucket
        self._door: Door = bucket.door
        self._vantage = vantage
        enforced = bucket.facts.ownership == BUCKET_OWNER_ENFORCED
        ways = (ALL_WAYS if latest else VERSION_WAYS) & ~(WRITE_ACP if enforced else 0)
        steps = Steps(bucket.steps)
        needed, tests = bucket.folders(covered)
        covering = bucket.document.clauses_of(covered, needed)
        clauses = [(clause, needs) for clause, needs in covering if clause.ways & ways]
        self._case = Case(clauses, key, ways, not enforced, steps)
        grantees = dict.fromkeys(source.grantee for view in acls for source in view.sources)
        others = [one for one in grantees if one not in (bucket.own_id, *PUBLIC_GROUPS)]
        self._crowd: Crowd = bucket.requesters.crowd(others, [vantage.party], tests, steps)
        kinds = Kinds(self._door, self._crowd, self._case, frozenset(grantees))
        self._relevant = {index for _, needs in kinds.clauses for index, _ in needs}
        unknowns, _, too_complex = unknowns_of(bucket, acls, self._crowd, kinds, cause)
        self._worlds, _ = unknowns.worlds(too_complex)

    def ways(self) -> WaysIn:
        (sender,) = self._crowd.holders
        internet, *places = (site for site in self._crowd.sites_of(sender) if site.place.point is None)
        here = self._crowd.requester(sender, internet)
        sure, possible = self._from(here, self._vantage.address)
        inside = 0 if self._vantage.address is None else sure & ~self._from(here, None)[0]
        placed = self._any(self._crowd.requester(sender, site) for site in places)
        if self._vantage.address is None and self._rests_on_addresses(here):
            placed |= possible & ~sure
        stranger = ANY_ACCOUNT if sender.party.signed else ANONYMOUS
        strangers = (sender, *(one for one in self._crowd.senders if one.party == stranger))
        everywhere = (self._crowd.requester(one, site) for one in strangers for site in self._crowd.sites_of(one))
        return WaysIn(sure, possible, placed, self._any(everywhere, headers=True), inside)

    # ---- single requests

    def _from(self, here: Requester, address: str | None) -> tuple[int, int]:
        """Return the ways that are sure, and those that are possible, from an address; None: it is not known."""
        asked = list(self._requests(here, address))
        possible, sure = 0, ALL_WAYS
        for some in (self._open(one, world) for one in asked for world in self._worlds):
            possible, sure = possible | some, sure & some
        if any(len(choice) > 1 for choice in self._relevant_choices(asked[0]).values()):
            sure = 0  # too many requests to try them one by one
        return sure, possible

    def _requests(self, here: Requester, address: str | None) -> Iterator[Requester]:
        """Yield the requests that the vantage may be sending: one for each combination of values that are not known.
        If they are too many, yield the one requester that may choose.
        """
        choices = (self._choice(index, choice, address) for index, choice in enumerate(here.choices))
        known = replace(here, choices=tuple(choices))
        open_ones = {key: some for key, some in self._relevant_choices(known).items() if len(some) > 1}
        if math.prod(map(len, open_ones.values())) > MOST_REQUESTS:
            yield known
            return
        for chosen in product(*open_ones.values()):
            values = dict(zip(open_ones, chosen, strict=True))
            each = ((values[key],) if key in values else some for key, some in enumerate(known.choices))
            yield replace(known, choices=tuple(each))

    def _choice(self, index: int, choice: tuple[int, ...] | None, address: str | None) -> tuple[int, ...] | None:
        """Return the sets of a condition key's tests that can be true together for the vantage: its address and its
        connection are known.
        """
        key = self._bucket.keys[index]
        tests = [test.bind({}) for test in key.tests]
        if key.name == _ADDRESS and address is not None:
            return bits(truth_vectors(tests, FixedValues((address,))))
        if key.name == CONNECTION:
            possible = CONNECTIONS[:-1] if self._vantage.tls else CONNECTIONS[-1:]
            return bits(vector for one in possible for vector in outcomes_of(tests, one, KeySteps()))
        return choice

    def _relevant_choices(self, requester: Requester) -> Mapping[int, tuple[int, ...]]:
        """Return the choices of the requester by condition key, of the keys that statements on the objects test. Keys
        that the world decides, and those of headers, which no request sends, are left out.
        """
        keys = sorted(self._relevant - self._door.headers)
        return {key: choice for key in keys if (choice := requester.choices[key]) is not None}

    def _rests_on_addresses(self, requester: Requester) -> bool:
        keys = self._relevant_choices(requester)
        return any(self._bucket.keys[key].name == _ADDRESS and len(choice) > 1 for key, choice in keys.items())

    def _open(self, requester: Requester, world: World, *, headers: bool = False) -> int:
        """Return the ways by which the requester gets in. headers: True if he sends any header."""
        sent = None if headers else frozenset[int]()
        each = (1 << index for index in range(len(WAYS)))
        return sum(
            way
            for way in each
            if way & self._case.ways
            and self._door.ways_in(requester, world, self._case._replace(ways=way), headers=sent)
        )

    def _any(self, requesters: Iterable[Requester], *, headers: bool = False) -> int:
        found = 0
        for requester in requesters:
            for world in self._worlds:
                found |= self._open(requester, world, headers=headers)
        return found
