"""An account on moto's server with the resources of a stack that the functions call."""

from __future__ import annotations

import urllib.request
from dataclasses import dataclass
from typing import Any, Final

import boto3

from auditor.ledger.dynamodb.ledger import create_table
from deploy.resolving import Stack

AUDITED: Final = "photos"


def tell(url: str, path: str, data: str = "") -> None:
    """One of moto's own calls."""
    # Werkzeug would take a body without a type for a form, and moto then sees none.
    request = urllib.request.Request(f"{url}/moto-api/{path}", data.encode(), {"Content-Type": "text/plain"})
    urllib.request.urlopen(request).close()


@dataclass(frozen=True)
class Account:
    """url: the server's own. resources: the stack's, resolved."""

    url: str
    stack: Stack
    resources: dict[str, Any]

    def variables(self, function: str) -> dict[str, str]:
        found: dict[str, str] = self.resources[function]["Properties"]["Environment"]["Variables"]
        return found

    @property
    def reports(self) -> str:
        """The name of the reports bucket."""
        return self.variables("AuditLambdaFunction")["AUDITOR_OUT"].removeprefix("s3://").partition("/")[0]

    def client(self, service: str) -> Any:
        """Of a session of its own: the default one keeps its credentials."""
        return boto3.Session().client(service, endpoint_url=self.url)


async def empty_account(url: str, stack: Stack) -> Account:
    """Reset the server, and make the stack's queues, topic, machine and table, and the two buckets."""
    tell(url, "reset")
    account = Account(url, stack, stack.resources())
    for one in account.resources.values():
        if one["Type"] == "AWS::SQS::Queue":
            account.client("sqs").create_queue(QueueName=one["Properties"]["QueueName"])
    account.client("sns").create_topic(Name=account.resources["AlertTopic"]["Properties"]["TopicName"])
    machine = account.resources["AuditMachine"]["Properties"]
    account.client("stepfunctions").create_state_machine(
        name=machine["StateMachineName"], definition=machine["DefinitionString"], roleArn=stack.arn_of("MachineRole")
    )
    for bucket in (AUDITED, account.reports):
        account.client("s3").create_bucket(Bucket=bucket)
    if "Ledger" in account.resources:
        await create_table(stack.resolve({"Ref": "Ledger"}), endpoint_url=url)
    return account
