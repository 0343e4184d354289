"""moto's server with state machines that run: it interprets them, and invokes functions at a local Invoke API.

moto 5.2 needs help with three things: the machines that CloudFormation makes are in another backend than those that
run, its own Lambda takes a Docker engine, and it redrives no execution.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from tools.local_aws.redrive import allow_redrives
from tools.local_aws.server import AtomicMotoServer

_LAMBDA: Final = "moto.stepfunctions.parser.asl.component.state.exec.state_task.lambda_eval_utils"
CONFIGURATION: Final = {"stepfunctions": {"execute_state_machine": True}}


def run_machines(port: int, invoke_url: Callable[[], str]) -> None:
    """Prepare moto, in this process, to run state machines. Call it before the server starts.

    port: the server's, which moto's interpreter calls. invoke_url: returns the address of the Invoke API, when a
    function is to be invoked.
    """
    import os
    from importlib import import_module

    import boto3
    from botocore.config import Config

    os.environ["MOTO_PORT"] = str(port)
    from moto.core.config import default_user_config

    for name, options in CONFIGURATION.items():
        default_user_config[name].update(options)  # type: ignore[literal-required]
    parser: Any = import_module("moto.stepfunctions.parser.models")
    models: Any = import_module("moto.stepfunctions.models")
    models.stepfunctions_backends = parser.stepfunctions_parser_backends
    evaluation: Any = import_module(_LAMBDA)
    elsewhere = evaluation.boto_client_for

    def client_for(service: str, region: str, state_credentials: Any = None) -> Any:
        if service != "lambda":
            return elsewhere(service=service, region=region, state_credentials=state_credentials)
        config = Config(read_timeout=1000, retries={"total_max_attempts": 1}, max_pool_connections=1)
        session = boto3.Session("testing", "testing", region_name=region)
        return session.client("lambda", endpoint_url=invoke_url(), config=config)

    evaluation.boto_client_for = client_for
    allow_redrives()


def main() -> None:
    port, address = int(sys.argv[1]), Path(sys.argv[2])
    run_machines(port, lambda: address.read_text().strip())
    AtomicMotoServer(ip_address="127.0.0.1", port=port, verbose=False).start()
    threading.Event().wait()


if __name__ == "__main__":
    main()
