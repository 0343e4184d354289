"""StopExecution and RedriveExecution for moto's interpreter, as Step Functions does them.

A stopped execution is ABORTED at once; a function that a step has invoked works on, and its answer is lost. A redrive
goes on in the same execution with the step that did not succeed, and keeps the results of the others. Of a Distributed
Map it runs the children that did not succeed, each from its own last step (Step Functions developer guide, "Redriving
executions" and "Redriving Map Runs"). The context object counts the redrives (the guide, "Accessing execution data from
the Context object"). moto 5.2 waits for the functions of a stopped execution, calls it FAILED, and redrives none.
"""

from __future__ import annotations

import copy
import threading
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import import_module
from types import SimpleNamespace
from typing import Any, Final

_PARSER: Final = "moto.stepfunctions.parser"
_ASL: Final = f"{_PARSER}.asl.component"
_WORKER: Final = f"{_ASL}.state.exec.state_map.iteration.itemprocessor.distributed_item_processor_worker"
REDRIVABLE: Final = frozenset({"FAILED", "ABORTED", "TIMED_OUT"})

Place = tuple[str, Any]
"""A state by its name, and its input."""


@dataclass(slots=True)
class _Progress:
    """How far an execution is, over all its attempts. redrives: number of redrives.

    entered: the step that it has entered last; None at first. resumes: True until a redrive has entered that step
    again. children: the step that each child of the map has entered last, by the index of its item. done: the outputs
    of the children that succeeded.
    """

    redrives: int = 0
    entered: Place | None = None
    resumes: bool = False
    children: dict[int, Place] = field(default_factory=dict)
    done: dict[int, Any] = field(default_factory=dict)


class _Redriving:
    """Notes the steps that the interpreter takes, and begins a redriven execution where it ended."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._progress: dict[str, _Progress] = defaultdict(_Progress)

    def _of(self, environment: Any) -> _Progress | None:
        """Return the progress; None for a thread of an attempt that ended before the last redrive."""
        execution = _context(environment)["Execution"]
        progress = self._progress[execution["Id"]]
        return progress if execution.get("RedriveCount", progress.redrives) == progress.redrives else None

    def begin(self, environment: Any) -> Place | None:
        """Begin an execution or one of its children. Return the step at which it goes on; None for the first step."""
        with self._lock:
            if (progress := self._of(environment)) is None:
                return None
            index = _index(environment)
            if index is not None:
                return progress.children.get(index)
            _context(environment)["Execution"]["RedriveCount"] = progress.redrives
            return progress.entered if progress.redrives else None

    def enter(self, environment: Any, name: str) -> None:
        """Note that a step is entered. A map that is entered another time, without a redrive, has new children."""
        place = (name, copy.deepcopy(environment.states.get_input()))
        with self._lock:
            if (progress := self._of(environment)) is None:
                return
            if (index := _index(environment)) is not None:
                progress.children[index] = place
                return
            if not progress.resumes:
                progress.children, progress.done = {}, {}
            progress.entered, progress.resumes = place, False

    def child(self, evaluate: Any, worker: Any, environment: Any, job: Any) -> None:
        """Run one child of a map, unless an earlier attempt has done it."""
        with self._lock:
            progress = self._of(environment)
            if progress is not None and job.job_index in progress.done:
                job.job_output = progress.done[job.job_index]
                return
        evaluate(worker, environment, job)
        with self._lock:
            ended = type(environment.program_state()).__name__ == "ProgramEnded"
            if ended and (progress := self._of(environment)) is not None:
                progress.done[job.job_index] = job.job_output

    def again(self, execution: Any) -> None:
        """Run an execution again that did not succeed."""
        with self._lock:
            progress = self._progress[execution.exec_arn]
            progress.redrives += 1
            progress.resumes = True
        execution.exec_worker = execution.error = execution.cause = execution.stop_date = None
        execution.start()


def _context(environment: Any) -> Any:
    return environment.states.context_object.context_object_data


def _index(environment: Any) -> int | None:
    """Return the index of the item of a map's child; None outside a map."""
    found = _context(environment).get("Map")
    return None if found is None else int(found["Item"]["Index"])


def allow_redrives() -> None:
    """Prepare moto, in this process, to stop and redrive executions. Call it before the server starts."""
    redriving = _Redriving()
    states: Any = import_module(f"{_ASL}.state.state").CommonStateField
    programs: Any = import_module(f"{_ASL}.program.program").Program
    workers: Any = import_module(_WORKER).DistributedItemProcessorWorker
    executions: Any = import_module(f"{_PARSER}.backend.execution")
    responses: Any = import_module("moto.stepfunctions.responses")
    errors: Any = import_module("moto.core.exceptions")
    body, evaluate, child, stop = states._eval_body, programs.eval, workers._eval_job, executions.Execution.stop

    def entered(state: Any, env: Any) -> None:
        redriving.enter(env, state.name)
        body(state, env)

    def begun(program: Any, env: Any) -> None:
        if (place := redriving.begin(env)) is not None:
            program = copy.copy(program)  # the children of a map share it
            program.start_at = SimpleNamespace(start_at_name=place[0])
            env.states.reset(input_value=copy.deepcopy(place[1]))
        evaluate(program, env)

    def stopped(execution: Any, stop_date: datetime, error: str | None, cause: str | None) -> None:
        if execution.status != "RUNNING":
            return
        execution.exec_worker._execution_communication = SimpleNamespace(terminated=lambda: None)
        stop(execution, stop_date, error, cause)
        execution.exec_status, execution.stop_date = executions.ExecutionStatus.ABORTED, stop_date

    def redrive(response: Any) -> Any:
        execution = response.stepfunction_backend.describe_execution(response._get_param("executionArn"))
        if execution.status not in REDRIVABLE:
            words = f"Execution is {execution.status} and cannot be redriven"
            raise errors.JsonRESTError("ExecutionNotRedrivable", words)
        redriving.again(execution)
        return responses.ActionResult({"redriveDate": datetime.now(UTC)})

    states._eval_body = entered
    programs.eval = begun
    workers._eval_job = lambda worker, env, job: redriving.child(child, worker, env, job)
    executions.Execution.stop = stopped
    responses.StepFunctionResponse.redrive_execution = redrive
