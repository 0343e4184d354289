"""Derive the verdict and the audience of an object from the answers to concrete requests, in each possible world."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from auditor.model.access import Verdict
from tests.verdict.oracle.audiences import STRANGE_PLACES, audience_of, trusted, widest, widest_of_strangers
from tests.verdict.oracle.candidates import numbers, texts
from tests.verdict.oracle.conditions import Values, like, marked, variables
from tests.verdict.oracle.entries import ANY_PLACE, Entry, Label, Labels, listed, note
from tests.verdict.oracle.identities import PUBLIC_PROVIDERS, Keys, Who, identities
from tests.verdict.oracle.places import Where, places
from tests.verdict.oracle.service import BY_KEY, BY_VERSION, BYTES, Opening, Point, Request, World, openings
from tests.verdict.oracle.statements import Memory
from tests.verdict.oracle.worlds import CHOSEN, CHOSEN_IF_SIGNED, CONDITIONAL, Case, Completed, worlds

_OF_ACCOUNTS = {"aws:principalaccount", "aws:principalarn", "aws:userid", "kms:calleraccount"}
_EVERY = frozenset((*BY_KEY, *BY_VERSION))
_SPELLED = {
    "aws:referer": "aws:Referer",
    "aws:useragent": "aws:UserAgent",
    "s3:if-match": "s3:if-match",
    "s3:if-none-match": "s3:if-none-match",
}


@dataclass(frozen=True)
class Answer:
    """The oracle's answer. audience: the texts of the widest audiences of all worlds."""

    verdict: Verdict
    audience: frozenset[str]


def judge(case: Case) -> Answer:
    """Return the verdict of the object in all worlds in which the facts may hold. The audience is that of any world; of
    strangers only those that get in in each, if there are such.
    """
    found = [_Asking(case, completed).answer() for completed in worlds(case)]
    verdicts = {one.verdict for one in found}
    if len(verdicts) > 1:
        masked = verdicts == {Verdict.MASKED, Verdict.PRIVATE}
        return Answer(Verdict.MASKED if masked else Verdict.UNKNOWN, frozenset())
    verdict = verdicts.pop()
    if verdict is Verdict.SHARED:
        labels = listed(entry for one in found for entry in one.shared)
        audience = widest({audience_of(*label, header) for label, header in labels.items()})
    else:
        audience = widest_of_strangers({audience_of(*one) for one in _exposing([one.exposing for one in found])})
    return Answer(verdict, frozenset(one.text for one in audience))


def _exposing(found: list[Labels]) -> Iterator[tuple[str, str | None, str, str | None, str | None]]:
    """Return the strangers who get in in each world, with the header that they need in one; all if there are none."""
    every = dict.fromkeys(label for labels in found for label in labels)
    for label in [label for label in every if all(label in labels for labels in found)] or every:
        headers = [labels[label] or "" for labels in found if label in labels]
        yield *label, max(headers, key=len) or None


@dataclass
class _Found:
    """The verdict in one world. exposing: the strangers who get in, each with its header. shared: the others."""

    verdict: Verdict
    exposing: Labels = field(default_factory=dict)
    shared: list[Entry] = field(default_factory=list)


class _Asking:
    """Asks one world for everybody's requests."""

    def __init__(self, case: Case, completed: Completed) -> None:
        self._world, self._names = completed.world, completed.names
        self._unique_ids = completed.unique_ids
        self._bare = completed.world.unhidden
        self._unencrypted = replace(completed.world, encryption=None)
        self._entries = case.trusted
        self._of_everyone: dict[object, dict[str, set[tuple[str, Opening]]]] = {}
        self._memory = Memory(completed.world.truth)  # type: ignore[arg-type]
        self._tests = [test for tests in self._names.tests.values() for test in tests]
        self._variables = {key for test in self._tests for key in test.keys[1:]}
        self._variables |= _variables_of_resources(completed.world)
        self._shown = self._variables | {test.key for test in self._tests if len(test.keys) > 1}
        self._plain = [test for test in self._tests if test.known and len(test.keys) == 1]
        pieces = completed.world.resource.split("/")
        self._numbers = [text for text in pieces if len(text) == 12 and text.isdigit()]
        noncurrent = case.versions and not case.ref.is_latest
        self._actions = () if noncurrent else BY_KEY
        self._whos: list[Who] = []
        self._wheres: list[Where] = []

    def answer(self) -> _Found:
        """Return the verdict, and those who get in."""
        whos = self._whos = list(self._distinct_whos())
        wheres = self._wheres = list(self._distinct_wheres())
        exposing: Labels = {}
        for who, keys in self._strangers(whos, wheres):
            note(exposing, (who.kind, who.name, "", None), self._through(keys))
        if exposing:
            return _Found(Verdict.EXPOSED, exposing)
        shared: dict[Entry, None] = {}
        hidden = False
        for who, where in itertools.product(whos, wheres):
            if not self._asks_from(who, where):
                continue
            for entry, opened in self._named(who, where, shared):
                if opened:
                    shared[entry] = None
                hidden = hidden or not opened
        # It is not known to whom a provider gives an identity: to insiders, to some others or to everybody.
        known = [label for label in listed(shared) if not _is_unclear(label)]
        known = [label for label in known if not self._is_own_instance(label)]
        unclear = [entry for entry in shared if _is_unclear(entry.label)]
        own = [entry for entry in shared if self._is_own_instance(entry.label)]
        if own and not known:
            return _Found(Verdict.UNKNOWN)
        if any(entry.is_open for entry in unclear) or (unclear and not known):
            return _Found(Verdict.UNKNOWN)
        if shared:
            return _Found(Verdict.SHARED, shared=list(shared))
        return _Found(Verdict.MASKED if hidden else Verdict.PRIVATE)

    def _asks_from(self, who: Who, where: Where) -> bool:
        """True if a requester sends requests from a place, and neither of the two is trusted."""
        inside = trusted(self._entries, who, where) or self._world.account in where.accounts
        return not (inside or (who.identity.service and where.kind != "internet"))

    def _is_own_instance(self, label: Label) -> bool:
        """True for the grantees of the own account's S3 Access Grants instance, which may be its own principals."""
        return label[0] == "access-grants" and f":{self._world.account}:" in (label[1] or "")

    def _named(self, who: Who, where: Where, known: Mapping[Entry, None]) -> Iterator[tuple[Entry, bool]]:
        """Return an entry for each request that is allowed, or only hidden, and True if allowed. known: the entries
        found so far; a requester who is among them without a limit needs no further request.
        """
        usual = self._entry(who, where, None)
        if usual in known:
            return
        for request in self._requests(who, where, others=True):
            entry = self._entry(who, where, request)
            if self._world.guesses_key:
                request = replace(request, public=self._public(where, self._point_of(who, request)))
            if self._allows(self._world, request):
                yield entry, True
                if entry == usual:
                    return
            elif self._allows(self._bare, request, denies=False):
                yield entry, False

    def _entry(self, who: Who, where: Where, request: Request | None) -> Entry:
        """Return the entry for a request; without one, for a request that needs no header and no access point."""
        place = ANY_PLACE if where.kind in STRANGE_PLACES else (where.kind, where.name)
        is_inside = who.organization in self._names.organizations and who.identity.service is None
        organization = who.organization if is_inside else None
        wider: set[tuple[str, str | None]] = set() if who.kind == "anyone" else {("anyone", None)}
        wider |= who.sources
        wider |= {("access-grants", "*")} if who.kind == "access-grants" else set()
        wider |= {("any-account", None)} if who.identity.signed and not who.stranger else set()
        wider |= {("account", name) for name in (who.identity.account, who.identity.arn) if name}
        wider |= {("account", text) for text in self._names.arn_patterns if like(marked(text), who.identity.arn or "")}
        label: Label = (who.kind, who.name, *place)
        header, places = None, {place, ANY_PLACE, *where.wider}
        if request is not None:
            header = self._headers(request.keys)
            user = (request.keys.get("aws:userid") or ("",))[0].partition(":")[0]
            wider |= {("account", user)} if user in self._unique_ids else set()
            if (point := self._name_of_point(request)) is not None:
                label = (who.kind, who.name, "access-point", point)
                places.add(label[2:])
                wider.add(("access-point", point))
                if who.kind in ("anyone", "any-account"):
                    label = ("access-point", point, *(ANY_PLACE if request.point is not None else place))
        is_open = place == ANY_PLACE and (label[2:] == ANY_PLACE or _takes_the_internet(request))
        return Entry(label, header, organization, frozenset(wider), frozenset(places), is_open)

    # ---- requests

    def _strangers(self, whos: list[Who], wheres: list[Where]) -> Iterator[tuple[Who, Keys]]:
        for who in whos:
            if not who.stranger:
                continue
            for where in wheres:
                if where.kind in STRANGE_PLACES and self._asks_from(who, where):
                    for request in self._requests(who, where, others=False):
                        if self._exposes(request):
                            yield who, request.keys

    def _exposes(self, request: Request) -> bool:
        if not self._world.only_named or request.point is not None:
            return self._allows(self._world, request)
        return self._allows(self._named_only, request)

    @cached_property
    def _named_only(self) -> World:
        """The world without the Allows that have a condition."""
        return replace(self._world, rules=tuple(rule for rule in self._world.rules if not (rule.allows and rule.tests)))

    def _allows(self, world: World, request: Request, *, denies: bool = True) -> bool:
        return any(True for _ in self._openings(world, request, denies=denies))

    def _openings(self, world: World, request: Request, *, denies: bool = True) -> Iterator[tuple[str, Opening]]:
        if all(request.keys.get(key) is None for key in CONDITIONAL):
            yield from self._by_either(world, request, _EVERY, denies=denies)
            return
        bare = replace(request, keys={**request.keys, **dict.fromkeys(CONDITIONAL)})
        yield from self._by_either(
            world, request, BYTES, denies=denies
        )  # only the ways to the bytes take these headers
        yield from self._by_either(world, bare, _EVERY - BYTES, denies=denies)

    def _by_either(
        self, world: World, request: Request, among: frozenset[str], *, denies: bool
    ) -> Iterator[tuple[str, Opening]]:
        """Yield the openings of the request by its key, and by each version that a policy tells apart."""
        by_key = [action for action in self._actions if action in among]
        by_version: list[str] = [action for action in BY_VERSION if action in among]
        if "s3:versionid" not in self._names.tests:
            yield from openings(world, self._memory, request, [*by_key, *by_version], denies=denies)
            return
        asking: list[tuple[Values, list[str]]] = [(None, by_key)]
        asking += [(version, by_version) for version in self._text_values("s3:versionid")]
        for version, actions in asking:
            asked = replace(request, keys={**request.keys, "s3:versionid": version})
            yield from openings(world, self._memory, asked, actions, denies=denies)

    def _point_of(self, who: Who, request: Request) -> str:
        """Return the ARN of the request's access point, in which "own" stands for the account of a requester whom no
        policy names by it; "" without an access point.
        """
        (arn,) = request.keys.get("s3:dataaccesspointarn") or ("",)
        (number,) = who.keys.get("aws:principalaccount") or ("",)
        return arn.replace(number, "own") if number and number not in self._names.accounts else arn

    def _public(self, where: Where, point: str) -> frozenset[tuple[str, Opening]]:
        """Return the openings by which any account gets in through an access point, the KMS key left aside: from one of
        the addresses that have the name of this place.
        """
        name = (where.kind, where.name, where.wider)
        if name not in self._of_everyone:
            found: dict[str, set[tuple[str, Opening]]] = {}
            alike = [one for one in self._wheres if (one.kind, one.name, one.wider) == name]
            strangers = [one for one in self._whos if one.stranger and one.identity.signed]
            for who, one in itertools.product(strangers, alike):
                for request in self._requests(who, one, others=True):
                    by = found.setdefault(self._point_of(who, request), set())
                    by.update(self._openings(self._unencrypted, request))
            self._of_everyone[name] = found
        return frozenset(self._of_everyone[name].get(point, ()))

    def _requests(self, who: Who, where: Where, *, others: bool) -> Iterator[Request]:
        """others: True for the access points of named accounts, too."""
        for point in self._points(who, others=others):
            blocks = [self._transport(), *(self._chosen(key, who) for key in self._names.tests if self._is_chosen(key))]
            for choices in itertools.product(*blocks):
                keys: dict[str, Values] = {**self._world.keys, **where.keys, **who.keys, **_of_point(point)}
                for choice in choices:
                    keys.update(choice)
                listed = any(point is one for one in self._world.points)
                stranger = who.stranger or who.identity.provider is not None
                yield Request(who.identity, stranger, keys, point if listed else None)

    def _points(self, who: Who, *, others: bool) -> list[Point | None]:
        """Return the access points that the requester may use: none, the bucket's, those of its own account, and of
        named others.
        """
        asks = any(key.startswith(("s3:dataaccesspoint", "s3:accesspoint")) for key in self._names.tests)
        number = who.keys.get("aws:principalaccount")
        if not asks or number is None:
            return [None]
        accounts = {number[0]}
        if others:  # but for the access points of a trusted account, which are its own affair
            trust = {text for one in self._names.accounts for text in (one, f"arn:aws:iam::{one}:root")}
            known = {entry.split(":")[4] if ":" in entry else entry for entry in trust.intersection(self._entries)}
            accounts |= self._names.accounts.keys() - known - {self._world.account}
        usual = (f"{self._world.region}:{{}}:accesspoint/zz", ":{}:accesspoint/zz.mrap")  # the second in many regions
        arns = [f"arn:aws:s3:{end.format(account)}" for end in usual for account in sorted(accounts)]
        for text in self._names.values("s3:dataaccesspointarn"):
            pieces = text.replace("*", "q").replace("?", "q").split(":")
            if len(pieces) > 5:
                region = self._world.region if pieces[3] == "q" else pieces[3]
                named = [pieces[4]] if pieces[4] in accounts else sorted(accounts) if not pieces[4].isdigit() else []
                arns += [":".join([*pieces[:3], region, account, *pieces[5:]]) for account in named]
        return [None, *self._world.points, *(Point(arn, arn.split(":")[4]) for arn in dict.fromkeys(arns))]

    def _is_chosen(self, key: str) -> bool:
        return key in (
            "aws:principaltype",
            *CHOSEN,
            *CHOSEN_IF_SIGNED,
            "aws:multifactorauthpresent",
            "s3:authtype",
            "s3:signatureage",
        ) or key.startswith("aws:principaltag/")

    def _chosen(self, key: str, who: Who) -> list[Keys]:
        """Return the choices of one key that a requester makes in each request."""
        signed = who.identity.signed and who.identity.service is None
        if key in CHOSEN:
            return [{key: value} for value in self._text_values(key, absent=True)]
        if not (signed or (who.identity.service and key in ("s3:authtype", "s3:signatureage"))):
            return [{}]
        if key == "s3:authtype":
            return self._only([{key: (name,)} for name in ("REST-HEADER", "REST-QUERY-STRING", "POST")])
        if key == "s3:signatureage":
            return self._only(
                [{key: (number,)} for number in numbers(self._names.values(key)) if not number.startswith("-")]
            )
        if key in who.keys:
            return [{}]
        if key == "aws:multifactorauthpresent":
            return self._only([{key: None}, {key: ("true",)}, {key: ("false",)}])
        if key == "aws:userid":
            may_have_one = who.kind in ("canonical-id", "group") and self._unique_ids
            taken = ("anonymous", *(() if may_have_one else self._names.unique_ids))
            texts = (value[0] for value in self._text_values(key) if value)
            return [{key: (text,)} for text in texts if text.partition(":")[0] not in taken]
        if key == "aws:principaltype":
            return self._only([{key: (name,)} for name in ("AssumedRole", "User", "Account", "FederatedUser")])
        return [{key: value} for value in self._text_values(key, absent=True)]

    def _transport(self) -> list[Keys]:
        return self._only(
            [
                {"aws:securetransport": ("true",), "s3:tlsversion": ("1.3",)},
                {"aws:securetransport": ("true",), "s3:tlsversion": ("1.2",)},
                {"aws:securetransport": ("false",), "s3:tlsversion": None},
            ]
        )

    def _text_values(self, key: str, *, absent: bool = False) -> list[Values]:
        """Return texts for a chosen key: one for each combination of answers to the conditions that ask for it."""
        found: list[Values] = [None] if absent else []
        wanted = list(self._names.values(key))
        for test in self._tests:
            if test.key == key:
                wanted += [text for name in test.keys[1:] for text in self._world.keys.get(name) or ()]
        if key in self._variables:
            for text in self._world.resource.partition("/")[2].split("/"):
                wanted.append(text)
            for test in self._tests:
                if key in test.keys[1:]:
                    wanted += [*self._names.values(test.key), *(self._world.keys.get(test.key) or ())]
        found += [(text,) for text in texts(wanted)]
        return [choice[key] for choice in self._only([{key: value} for value in found])]

    # ---- fewer requests, with the same answers

    def _only(self, choices: list[Keys]) -> list[Keys]:
        """Return one of the choices for each combination of answers to the conditions."""
        found: dict[object, Keys] = {}
        for choice in choices:
            found.setdefault(self._answers(choice), choice)
        return list(found.values())

    def _answers(self, keys: Keys) -> object:
        shown = [(key, keys[key]) for key in sorted(self._shown.intersection(keys))] if self._shown else []
        holds = self._memory.holds
        return tuple([holds(test, keys) for test in self._plain if test.key in keys]), tuple(shown)

    def _distinct_whos(self) -> Iterator[Who]:
        found: set[object] = set()
        every = (
            *self._world.rules,
            *(rule for point in self._world.points for rule in point.rules),
            *(self._world.key_rules or ()),
        )
        asks_points = any(key.startswith("s3:dataaccesspoint") for key in self._names.tests)
        for who in identities(
            self._names,
            self._world.account,
            self._world.bucket_owner,
            self._numbers,
            self._unique_ids,
            by_number=not _OF_ACCOUNTS.isdisjoint(self._variables),
        ):
            named_by = tuple(rule.names(who.identity) for rule in every)
            insider = trusted(self._entries, who, None)
            by_account = asks_points or self._world.key_rules is not None
            account = (who.identity.account, who.keys.get("aws:principalaccount")) if by_account else None
            names = (who.kind, who.name, who.instance)
            answers = (names, named_by, insider, account, who.identity.canonical, self._answers(who.keys))
            if answers not in found:
                found.add(answers)
                yield who

    def _distinct_wheres(self) -> Iterator[Where]:
        found: set[object] = set()
        vpcs = {point.vpc for point in self._world.points}
        for where in places(self._names, tuple(vpc for vpc in vpcs if vpc), self._world.account):
            vpc = where.keys.get("aws:sourcevpc")
            insider = trusted(self._entries, None, where), self._world.account in where.accounts
            answers = (
                where.kind,
                where.name,
                insider,
                where.wider,
                vpc if vpc and vpc[0] in vpcs else None,
                self._answers(where.keys),
            )
            if answers not in found:
                found.add(answers)
                yield where

    def _through(self, keys: Keys) -> str | None:
        """Return the way on which a stranger gets in: the bucket's access point, or the headers that it needs."""
        arn = keys.get("s3:dataaccesspointarn")
        own = arn is not None and any(point.arn in arn for point in self._world.points)
        return f"access-point {arn[0]}" if own and arn else self._headers(keys)

    def _name_of_point(self, request: Request) -> str | None:
        """Return the name of the access point through which a request comes: of a named account as the policy names it,
        or by its account; of the bucket by its ARN. None where nothing names the access point.
        """
        arn, account = (request.keys.get(f"s3:dataaccesspoint{part}") for part in ("arn", "account"))
        if arn is None or account is None:
            return None
        if request.point is not None:
            return arn[0] if request.point.listed else None
        if account[0] == self._world.account or account[0] not in self._names.accounts:
            return None
        values = self._names.values("s3:dataaccesspointarn")
        named = [text for text in values if like(marked(text), arn[0])]
        return named[0] if named else f"arn:*:s3:*:{account[0]}:accesspoint/*"

    def _headers(self, keys: Keys) -> str | None:
        """Return the headers of a request that a requester chooses, None if it needs none."""
        names = [_SPELLED[key] for key in CHOSEN if keys.get(key) is not None]
        return f"header {' and '.join(names)}" if names else None


def _is_unclear(label: Label) -> bool:
    return label[0] == "identity-provider" and label[1] not in PUBLIC_PROVIDERS


def _takes_the_internet(request: Request | None) -> bool:
    return request is not None and request.point is not None and request.point.vpc is None


def _variables_of_resources(world: World) -> set[str]:
    return {key for rule in world.rules for text in rule.resources for key in variables(text)}


def _of_point(point: Point | None) -> Keys:
    if point is None:
        return {}
    origin = "Internet" if point.vpc is None else "VPC"
    return {
        "s3:dataaccesspointarn": (point.arn,),
        "s3:dataaccesspointaccount": (point.account,),
        "s3:accesspointnetworkorigin": (origin,),
    }
