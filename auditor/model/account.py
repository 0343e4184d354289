"""An entry of [[accounts]] in auditor.toml: the name of a party that has access."""

from __future__ import annotations

from auditor.model.record import record


@record()
class NamedAccount:
    """The name of an account, a network or another party. id: the party as a report names it: a canonical ID, an
    account's 12 digits, an ARN, an organization, a network, a VPC. team: the team that answers for the party; None if
    none is given.
    """

    id: str
    name: str
    team: str | None = None

    @property
    def text(self) -> str:
        """The name, with the team."""
        return self.name if self.team is None else f"{self.name} (team {self.team})"
