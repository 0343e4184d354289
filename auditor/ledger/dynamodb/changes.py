"""Build the arguments of DynamoDB's UpdateItem: changes and conditions."""

from __future__ import annotations

from typing import Any

from auditor.ledger.dynamodb.items import Name

Value = str | int | float | bool | dict[str, str]


class Change:
    """A change of one item, with the conditions under which DynamoDB makes it. Each method adds to the change and
    returns it.
    """

    def __init__(self, name: Name) -> None:
        self.name = name
        self._sets: list[str] = []
        self._adds: list[str] = []
        self._removes: list[str] = []
        self._conditions: list[str] = []
        self._names: dict[str, str] = {}
        self._values: dict[str, dict[str, Any]] = {}

    def put(self, attribute: str, value: Value | None) -> Change:
        """Set the attribute, or remove it if the value is None."""
        if value is None:
            self._removes.append(self._attribute(attribute))
        else:
            self._sets.append(f"{self._attribute(attribute)} = {self._value(value)}")
        return self

    def once(self, attribute: str, value: Value | None) -> Change:
        """Set the attribute if the item does not have it. A value of None changes nothing."""
        if value is not None:
            name = self._attribute(attribute)
            self._sets.append(f"{name} = if_not_exists({name}, {self._value(value)})")
        return self

    def add(self, attribute: str, amount: int) -> Change:
        """Add the amount to the attribute, which is a number; if the item lacks the attribute, set it to the amount."""
        self._adds.append(f"{self._attribute(attribute)} {self._value(amount)}")
        return self

    def when(self, attribute: str, value: Value | None) -> Change:
        """Change the item only if the attribute has this value; if the value is None, only if the item lacks the
        attribute.
        """
        self._conditions.append(self._is(attribute, value))
        return self

    def when_any(self, *conditions: tuple[str, str, Value | None]) -> Change:
        """Change the item only if at least one of these conditions holds.

        A condition is an attribute, a sign (`=`, `<` or `<=`) and a value; the value None means that the item lacks the
        attribute.
        """
        alternatives = [
            self._is(attribute, value)
            if value is None or sign == "="
            else f"{self._attribute(attribute)} {sign} {self._value(value)}"
            for attribute, sign, value in conditions
        ]
        self._conditions.append(f"({' OR '.join(alternatives)})")
        return self

    def when_there(self, attribute: str) -> Change:
        """Change the item only if it has the attribute."""
        self._conditions.append(f"attribute_exists({self._attribute(attribute)})")
        return self

    def arguments(self) -> dict[str, Any]:
        """Return the arguments for UpdateItem, or for an Update in a transaction. The caller adds the table's name."""
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
    """Return the argument `Key` of a DynamoDB call, for the item with this pk and sk."""
    return {"pk": {"S": name[0]}, "sk": {"S": name[1]}}


def _typed(value: Value) -> dict[str, Any]:
    match value:
        case bool():
            return {"BOOL": value}
        case int() | float():
            return {"N": repr(value)}
        case str():
            return {"S": value}
        case _:
            return {"M": {name: {"S": one} for name, one in value.items()}}
