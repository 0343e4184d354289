"""Build the arguments of one UpdateItem: its changes and its conditions."""

from __future__ import annotations

from typing import Any

from auditor.ledger.dynamodb.items import Name

Value = str | int | float | bool | dict[str, str] | list[str]


class Change:
    """A change of one item. `put` replaces an attribute; `once` sets an attribute only if it is absent."""

    def __init__(self, name: Name) -> None:
        self.name = name
        self._sets: list[str] = []
        self._adds: list[str] = []
        self._removes: list[str] = []
        self._conditions: list[str] = []
        self._names: dict[str, str] = {}
        self._values: dict[str, dict[str, Any]] = {}

    def put(self, attribute: str, value: Value | None) -> Change:
        """Set the attribute; None removes it."""
        if value is None:
            self._removes.append(self._attribute(attribute))
        else:
            self._sets.append(f"{self._attribute(attribute)} = {self._value(value)}")
        return self

    def once(self, attribute: str, value: Value | None) -> Change:
        """Set the attribute if it is absent. None changes nothing."""
        if value is not None:
            name = self._attribute(attribute)
            self._sets.append(f"{name} = if_not_exists({name}, {self._value(value)})")
        return self

    def append(self, attribute: str, value: str) -> Change:
        """Append the value to the attribute's list; an absent list counts as empty."""
        name, empty = self._attribute(attribute), self._value([])
        self._sets.append(f"{name} = list_append(if_not_exists({name}, {empty}), {self._value([value])})")
        return self

    def add(self, attribute: str, amount: int) -> Change:
        """Add the amount to the attribute; an absent attribute counts as 0."""
        self._adds.append(f"{self._attribute(attribute)} {self._value(amount)}")
        return self

    def when(self, attribute: str, value: Value | None) -> Change:
        """Require that the attribute has this value; None: that it is absent."""
        self._conditions.append(self._is(attribute, value))
        return self

    def when_any(self, *conditions: tuple[str, str, Value | None]) -> Change:
        """Require that one of the conditions holds. Each is (attribute, `=`, `<` or `<=`, value)."""
        alternatives = [
            self._is(attribute, value)
            if value is None or sign == "="
            else f"{self._attribute(attribute)} {sign} {self._value(value)}"
            for attribute, sign, value in conditions
        ]
        self._conditions.append(f"({' OR '.join(alternatives)})")
        return self

    def when_there(self, attribute: str) -> Change:
        """Require that the attribute exists."""
        self._conditions.append(f"attribute_exists({self._attribute(attribute)})")
        return self

    def arguments(self) -> dict[str, Any]:
        """Return the members of UpdateItem, or of a transaction's Update, except the table's name."""
        clauses = (("SET", self._sets), ("REMOVE", self._removes), ("ADD", self._adds))
        found: dict[str, Any] = {
            "Key": key_of(self.name),
            "UpdateExpression": " ".join(f"{word} {', '.join(parts)}" for word, parts in clauses if parts),
            "ExpressionAttributeNames": self._names,
        }
        if self._values:
            found["ExpressionAttributeValues"] = self._values
        if self._conditions:
            found["ConditionExpression"] = " AND ".join(self._conditions)
        return found

    def _is(self, attribute: str, value: Value | None) -> str:
        name = self._attribute(attribute)
        return f"attribute_not_exists({name})" if value is None else f"{name} = {self._value(value)}"

    def _attribute(self, attribute: str) -> str:
        for name, meant in self._names.items():
            if meant == attribute:
                return name
        name = f"#n{len(self._names)}"
        self._names[name] = attribute
        return name

    def _value(self, value: Value) -> str:
        name = f":v{len(self._values)}"
        self._values[name] = _typed(value)
        return name


def key_of(name: Name) -> dict[str, dict[str, str]]:
    """Return the member Key of a call."""
    return {"pk": {"S": name[0]}, "sk": {"S": name[1]}}


def _typed(value: Value) -> dict[str, Any]:
    match value:
        case bool():
            return {"BOOL": value}
        case int() | float():
            return {"N": repr(value)}
        case str():
            return {"S": value}
        case list():
            return {"L": [{"S": one} for one in value]}
        case _:
            return {"M": {name: {"S": one} for name, one in value.items()}}
