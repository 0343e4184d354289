"""Record the inputs of a package beside it, so that equal inputs are not built again."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from deploy.archive import replace
from deploy.cut import Files
from deploy.options import Options


def input_digest(options: Options, sources: Files, interpreter: Path | None) -> str:
    """Return the SHA-256 of all inputs: the lock, the auditor's code, the builder, the options and the interpreter."""
    digest = hashlib.sha256()
    chosen = [
        options.architecture,
        options.platform,
        options.layer is not None,
        list(options.time),
        options.python,
        str(interpreter),
    ]
    inputs = dict(sources)
    for path in (options.root / options.requirements, *sorted((options.root / "deploy").glob("*.py"))):
        inputs[path.relative_to(options.root).as_posix()] = path.read_bytes()
    digest.update(json.dumps(chosen).encode())
    for name in sorted(inputs):
        digest.update(json.dumps([name, hashlib.sha256(inputs[name]).hexdigest()]).encode())
    return digest.hexdigest()


def is_current(options: Options, inputs: str) -> bool:
    """True if the outputs exist and were made from these inputs."""
    try:
        return _path(options).read_bytes() == _stamp(options, inputs)
    except FileNotFoundError:
        return False


def write(options: Options, inputs: str) -> None:
    replace(_path(options), _stamp(options, inputs))


def _stamp(options: Options, inputs: str) -> bytes:
    made = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in options.outputs}
    return (json.dumps({"inputs": inputs, "outputs": made}, indent=2) + "\n").encode()


def _path(options: Options) -> Path:
    return options.output.with_name(f"{options.output.name}.stamp")
