"""A template resolved as CloudFormation would: conditions decided, functions computed, names and ARNs made up."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

ACCOUNT: Final = "123456789012"
_NOTHING: Final = object()
_VARIABLE: Final = re.compile(r"\$\{([A-Za-z0-9:.]+)\}")
_SERVICES: Final = {
    "AWS::SQS::Queue": "sqs",
    "AWS::SNS::Topic": "sns",
    "AWS::DynamoDB::Table": "dynamodb",
    "AWS::Lambda::Function": "lambda",
    "AWS::Events::Rule": "events",
    "AWS::IAM::Role": "iam",
    "AWS::S3::Bucket": "s3",
    "AWS::StepFunctions::StateMachine": "states",
}
_FOLDERS: Final = {
    "dynamodb": "table/",
    "lambda": "function:",
    "events": "rule/",
    "iam": "role/",
    "states": "stateMachine:",
}
_BY_ARN: Final = ("AWS::SNS::Topic", "AWS::StepFunctions::StateMachine")
"""Types whose Ref is their ARN."""
_NAMES: Final = ("QueueName", "TopicName", "TableName", "FunctionName", "RoleName", "BucketName", "StateMachineName")


@dataclass
class Stack:
    """A template in one partition and region. parameters: values that replace the template's defaults."""

    template: Mapping[str, Any]
    partition: str = "aws"
    region: str = "eu-west-1"
    parameters: dict[str, str] = field(default_factory=dict)

    def resources(self) -> dict[str, Any]:
        """Return every resource whose condition holds, resolved."""
        return {
            name: self.resolve(resource)
            for name, resource in self.template["Resources"].items()
            if "Condition" not in resource or self.holds(resource["Condition"])
        }

    def holds(self, condition: str) -> bool:
        return bool(self.resolve(self.template["Conditions"][condition]))

    def resolve(self, value: Any) -> Any:
        if isinstance(value, list):
            return [found for item in value if (found := self.resolve(item)) is not _NOTHING]
        if not isinstance(value, dict):
            return value
        if len(value) == 1:
            ((name, argument),) = value.items()
            if name in ("Ref", "Condition") and isinstance(argument, str):
                return self._ref(argument) if name == "Ref" else self.holds(argument)
            if name.startswith("Fn::"):
                return getattr(self, f"_{name[4:].lower()}")(argument)
        resolved = {name: self.resolve(item) for name, item in value.items()}
        return {name: item for name, item in resolved.items() if item is not _NOTHING}

    def arn_of(self, name: str) -> str:
        resource = self.template["Resources"][name]
        service = _SERVICES[resource["Type"]]
        place = ":" if service == "s3" else f":{ACCOUNT}" if service == "iam" else f"{self.region}:{ACCOUNT}"
        return f"arn:{self.partition}:{service}:{place}:{_FOLDERS.get(service, '')}{self._name_of(name)}"

    def _name_of(self, name: str) -> str:
        properties = self.template["Resources"][name].get("Properties", {})
        return str(next((properties[key] for key in _NAMES if key in properties), f"stack-{name.lower()}"))

    def _ref(self, name: str) -> Any:
        pseudo = {"AWS::Partition": self.partition, "AWS::Region": self.region, "AWS::AccountId": ACCOUNT}
        if name == "AWS::NoValue":
            return _NOTHING
        if name in pseudo:
            return pseudo[name]
        if name in self.template.get("Parameters", {}):
            parameter = self.template["Parameters"][name]
            text = str(self.parameters[name] if name in self.parameters else parameter["Default"])
            return text.split(",") if parameter["Type"] == "CommaDelimitedList" else text
        kind = self.template["Resources"][name]["Type"]
        if kind == "AWS::SQS::Queue":
            return f"https://sqs.{self.region}.amazonaws.com/{ACCOUNT}/{self._name_of(name)}"
        return self.arn_of(name) if kind in _BY_ARN else self._name_of(name)

    def _getatt(self, argument: list[str]) -> str:
        name, attribute = argument
        return self.arn_of(name) if attribute == "Arn" else self._name_of(name)

    def _if(self, argument: list[Any]) -> Any:
        condition, yes, no = argument
        return self.resolve(yes if self.holds(condition) else no)

    def _equals(self, argument: list[Any]) -> bool:
        one, other = map(self.resolve, argument)
        return bool(one == other)

    def _not(self, argument: list[Any]) -> bool:
        return not self.resolve(argument[0])

    def _and(self, argument: list[Any]) -> bool:
        return all(map(self.resolve, argument))

    def _or(self, argument: list[Any]) -> bool:
        return any(map(self.resolve, argument))

    def _join(self, argument: list[Any]) -> str:
        separator, parts = argument
        return str(separator).join(self.resolve(parts))

    def _split(self, argument: list[Any]) -> list[str]:
        separator, text = argument
        return str(self.resolve(text)).split(separator)

    def _select(self, argument: list[Any]) -> Any:
        index, values = argument
        return self.resolve(values)[int(index)]

    def _sub(self, argument: Any) -> str:
        text, values = argument if isinstance(argument, list) else (argument, {})
        known = self.resolve(values)

        def replace(found: re.Match[str]) -> str:
            name = found[1]
            if name in known:
                return str(known[name])
            return self._getatt(name.split(".", 1)) if "." in name else str(self._ref(name))

        return _VARIABLE.sub(replace, text)
