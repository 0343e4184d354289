"""Hash one object. The bytes of the listed version pass through a few buffers in memory."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Final

from auditor.aio.backoff import backoff
from auditor.hashing.digest.digester import InlineExecutor
from auditor.hashing.digest.one_pass import ObjectDigester
from auditor.hashing.digest.options import Checkpoint, HashOptions
from auditor.hashing.digest.result import Failed, Result
from auditor.hashing.digest.streams import ONE_CORE, function_memory
from auditor.hashing.queue.message import HashTask
from auditor.s3.paced_reads import Reads

THREADS: Final = 64
"""Largest number of threads that hash, one for each large object. A thread that waits for bytes costs nothing."""
DEFAULT: Final = HashOptions()


async def hash_object(
    engine: Reads,
    task: HashTask,
    algorithms: Sequence[str],
    options: HashOptions = DEFAULT,
    checkpoint: Checkpoint | None = None,
) -> Result:
    """Read an object once, and compute its digest by each of the algorithms.

    A failure of this object is returned as a result. CredentialsError and UsageError, which every object would meet,
    are raised, and so are the errors of `options.save`. checkpoint: from a Paused result, or from `options.save`; None
    to begin at the first byte. If a checkpoint cannot be used, the reason is logged, and the object is hashed from its
    first byte.
    """
    return await ObjectDigester(engine, task, algorithms, options).run(checkpoint)


async def hash_patiently(
    engine: Reads,
    task: HashTask,
    algorithms: Sequence[str],
    options: HashOptions = DEFAULT,
    checkpoint: Checkpoint | None = None,
) -> Result:
    """Call hash_object(), and repeat the call after a failure that may be temporary, up to `options.attempts` calls in
    all.

    With `options.patience`, an outage of S3 is waited out, and then the calls begin anew.
    """

    async def hashing() -> Result:
        for attempt in range(1, options.attempts):
            result = await hash_object(engine, task, algorithms, options, checkpoint)
            if not (isinstance(result, Failed) and result.retryable):
                return result
            await options.sleep(backoff(attempt, 0.2, 15.0))
        return await hash_object(engine, task, algorithms, options, checkpoint)

    return await (hashing() if options.patience is None else options.patience(engine, hashing))


def hash_threads(environ: Mapping[str, str] = os.environ) -> Executor:
    """Return the thread pool for hashing, which has one thread for each large object. The caller has to shut it down.

    A Lambda function with one core or less gets no threads: they would save no time, and passing buffers on costs CPU.
    """
    memory = function_memory(environ)
    if memory is not None and memory <= ONE_CORE:
        return InlineExecutor()
    return ThreadPoolExecutor(THREADS, thread_name_prefix="auditor-hash")
