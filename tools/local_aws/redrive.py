"""RedriveExecution for moto's interpreter: an execution that failed goes on from the step that failed.

Step Functions keeps the results of the steps that ended, and of a Distributed Map those of the children that succeeded.
It runs the other children again, each from its own unsuccessful step, in the same execution (Step Functions developer
guide, "Redriving executions" and "Redriving Map Runs"). One failed child fails a map that tolerates none: the others
are aborted, and start no further step; a function that one of them has invoked works on. The context object counts the
redrives (the guide, "Accessing execution data from the Context object"). moto 5.2 does none of this.
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

_ASL: Final = "moto.stepfunctions.parser.asl"
_WORKER: Final = f"{_ASL}.component.state.exec.state_map.iteration.itemprocessor.distributed_item_processor_worker"
_THRESHOLD: Final = "States.ExceedToleratedFailureThreshold"
REDRIVABLE: Final = frozenset({"FAILED", "ABORTED", "TIMED_OUT"})

Place = tuple[str, Any]
"""A state by its name, and its input."""


@dataclass(slots=True)
class _Progress:
    """How far an execution is, over all its attempts. redrives: number of redrives.

    entered: the step that it has entered last; None at first. children: the same of each child of the map, by the index
    of its item. done: the outputs of the children that succeeded. at_work: the environments of the children of this
    attempt.
    """

    redrives: int = 0
    entered: Place | None = None
    children: dict[int, Place] = field(default_factory=dict)
    done: dict[int, Any] = field(default_factory=dict)
    at_work: list[Any] = field(default_factory=list)


class _Redriving:
    """Notes the steps that the interpreter takes, and begins a redriven execution where it ended."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._progress: dict[str, _Progress] = defaultdict(_Progress)

    def of(self, environment: Any) -> _Progress:
        return self._progress[environment.states.context_object.context_object_data["Execution"]["Id"]]

    def enter(self, environment: Any, name: str) -> None:
        """Note that a step is entered."""
        place = (name, copy.deepcopy(environment.states.get_input()))
        with self._lock:
            progress, index = self.of(environment), _index(environment)
            if index is None:
                progress.entered = place
            elif environment in progress.at_work:
                progress.children[index] = place

    def begins_at(self, environment: Any) -> Place | None:
        """Return the step at which a redriven execution, or one of its children, begins; None for the first step."""
        with self._lock:
            progress, index = self.of(environment), _index(environment)
            if not progress.redrives:
                return None
            return progress.entered if index is None else progress.children.get(index)

    def redrives(self, environment: Any) -> int:
        """Return how often the execution was redriven."""
        with self._lock:
            return self.of(environment).redrives

    def again(self, execution: Any) -> None:
        """Run an execution again that did not succeed."""
        with self._lock:
            progress = self._progress[execution.exec_arn]
            progress.redrives += 1
            progress.at_work = []
        execution.exec_worker = execution.error = execution.cause = execution.stop_date = None
        execution.start()

    def child(self, original: Any, worker: Any, environment: Any, job: Any) -> None:
        """Run one child of a map, unless an earlier attempt has done it."""
        with self._lock:
            progress = self.of(environment)
            attempt = progress.redrives
            if job.job_index in progress.done:
                job.job_output = progress.done[job.job_index]
                return
            progress.at_work.append(environment)
        original(worker, environment, job)
        with self._lock:
            if attempt != progress.redrives:  # aborted, and redriven since
                return
            if type(environment.program_state()).__name__ == "ProgramEnded":
                progress.at_work = [one for one in progress.at_work if one is not environment]
                progress.done[job.job_index] = job.job_output
                return
            others, progress.at_work = [one for one in progress.at_work if one is not environment], []
        for one in others:
            one.set_stop(stop_date=datetime.now(UTC), cause=None, error=None)
        job.job_output = _failure(environment)


def _index(environment: Any) -> int | None:
    """Return the index of the item of a map's child; None outside a map."""
    found = environment.states.context_object.context_object_data.get("Map")
    return None if found is None else int(found["Item"]["Index"])


def _failure(environment: Any) -> Exception:
    """Return the error of a map of which a child has failed."""
    errors: Any = import_module(f"{_ASL}.component.common.error_name.failure_event")
    names: Any = import_module(f"{_ASL}.component.common.error_name.states_error_name")
    types: Any = import_module(f"{_ASL}.component.common.error_name.states_error_name_type").StatesErrorNameType
    kinds: Any = import_module("moto.stepfunctions.parser.api").HistoryEventType
    cause = "The specified tolerated failure threshold was exceeded"
    details = {"mapRunFailedEventDetails": {"error": _THRESHOLD, "cause": cause}}
    event = errors.FailureEvent(
        env=environment,
        error_name=names.StatesErrorName(typ=types.StatesExceedToleratedFailureThreshold),
        event_type=kinds.MapRunFailed,
        event_details=details,
    )
    made: Exception = errors.FailureEventException(failure_event=event)
    return made


def allow_redrives() -> None:
    """Prepare moto, in this process, to redrive executions. Call it before the server starts."""
    redriving = _Redriving()
    states: Any = import_module(f"{_ASL}.component.state.state").CommonStateField
    programs: Any = import_module(f"{_ASL}.component.program.program").Program
    workers: Any = import_module(_WORKER).DistributedItemProcessorWorker
    responses: Any = import_module("moto.stepfunctions.responses")
    errors: Any = import_module("moto.core.exceptions")
    body, evaluate, child = states._eval_body, programs.eval, workers._eval_job

    def entered(state: Any, env: Any) -> None:
        redriving.enter(env, state.name)
        body(state, env)

    def begun(program: Any, env: Any) -> None:
        env.states.context_object.context_object_data["Execution"]["RedriveCount"] = redriving.redrives(env)
        if (place := redriving.begins_at(env)) is not None:
            program = copy.copy(program)  # the children of a map share it
            program.start_at = SimpleNamespace(start_at_name=place[0])
            env.states.reset(input_value=copy.deepcopy(place[1]))
        evaluate(program, env)

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
    responses.StepFunctionResponse.redrive_execution = redrive
