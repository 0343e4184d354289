"""Count the exposed and shared objects of a run by kind, with one example of each kind. A change affects all objects of
a kind as it affects the example.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct

from auditor.model.access import Verdict
from auditor.model.bucket import BucketFacts
from auditor.model.json_codec import fact_from_json, fact_to_json, typed
from auditor.model.object import Acl, Head, ObjectRef, Skipped, Unread
from auditor.verdict.judge import Kind, VerdictJudge

KINDS: Final = 256
"""Largest number of kinds that are kept; further ones are only counted."""
OPEN: Final = frozenset({Verdict.EXPOSED, Verdict.SHARED})


class OpenObject(Struct, frozen=True):
    """An open object, reduced to the facts that decide its access. excepted: True if an exception covers it."""

    key: str
    owner: str | None
    is_latest: bool
    acl: Acl | Unread | Skipped
    head: Head | Unread | Skipped
    excepted: bool

    @classmethod
    def of(
        cls, ref: ObjectRef, acl: Acl | Unread | Skipped, head: Head | Unread | Skipped, *, excepted: bool
    ) -> OpenObject:
        if isinstance(head, Head):
            head = Head(
                etag="",
                content_length=0,
                server_side_encryption=head.server_side_encryption,
                sse_kms_key_id=head.sse_kms_key_id,
                sse_customer_algorithm=head.sse_customer_algorithm,
            )
        return cls(ref.key, ref.owner, ref.is_latest, acl, head, excepted)

    @property
    def ref(self) -> ObjectRef:
        return ObjectRef(self.key, "", 0, "", owner=self.owner, is_latest=self.is_latest)


class JudgedFor(Struct, frozen=True):
    """The facts by which the objects of a run are judged, before and after a hypothetical change. Each field is that of
    VerdictJudge.
    """

    facts: BucketFacts
    trusted: frozenset[str]
    versions: bool
    now: datetime | None

    def judge(self, facts: BucketFacts | None = None, trusted: frozenset[str] = frozenset()) -> VerdictJudge:
        """Return a judge by these facts, or by others in the place of the bucket's."""
        return VerdictJudge(facts or self.facts, self.trusted | trusted, self.versions, self.now)


class OpenKinds:
    """Counts open objects by kind: the first KINDS kinds with an example each, the objects of the others together."""

    def __init__(self, judged_for: JudgedFor, saved: SavedKinds | None = None) -> None:
        self.judged_for = judged_for
        self._judge = judged_for.judge()
        self._found: dict[tuple[Kind, bool], list[Any]] = {}
        self._others: Counter[tuple[str, bool]] = Counter()
        if saved is not None:
            self.include(saved)

    def include(self, saved: SavedKinds) -> None:
        """Add the counts of a checkpoint."""
        for opened, number in saved.kinds:
            self.add(self._judge.access(opened.ref, opened.acl, opened.head).verdict, opened, number)
        for verdict, excepted, number in saved.others:
            self._others[verdict, excepted] += number

    def add(self, verdict: Verdict, opened: OpenObject, number: int = 1) -> None:
        """Count an object that is exposed or shared."""
        kind = (self._judge.kind(opened.ref, opened.acl, opened.head), opened.excepted)
        found = self._found.get(kind)
        if found is not None:
            found[1] += number
        elif len(self._found) < KINDS:
            self._found[kind] = [opened, number]
        else:
            self._others[verdict.value, opened.excepted] += number

    def examples(self) -> Sequence[tuple[OpenObject, int]]:
        """Return the example of each kind with the number of its objects, the largest numbers first."""
        return sorted(((opened, number) for opened, number in self._found.values()), key=lambda one: -one[1])

    def others(self, verdict: Verdict, *, excepted: bool = False) -> int:
        """Return the number of objects of this verdict whose kind is not kept."""
        return self._others[verdict.value, excepted]

    def saved(self) -> dict[str, Any]:
        """Return the counts as JSON values, for a checkpoint."""
        kinds = [[fact_to_json(opened), number] for opened, number in self._found.values()]
        return {"kinds": kinds, "others": [[*name, number] for name, number in self._others.items()]}


class SavedKinds(Struct, frozen=True):
    """The counts that OpenKinds.saved() wrote, read back."""

    kinds: tuple[tuple[OpenObject, int], ...] = ()
    others: tuple[tuple[str, bool, int], ...] = ()

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> SavedKinds:
        """Raises JsonError for anything else."""
        found = typed(_KindsSaved, saved)
        return cls(tuple((fact_from_json(OpenObject, one), number) for one, number in found.kinds), found.others)


class _KindsSaved(Struct, frozen=True):
    kinds: tuple[tuple[Any, Annotated[int, Meta(gt=0)]], ...]
    others: tuple[tuple[Literal["exposed", "shared"], bool, int], ...]
