"""The command line: `auditor COMMAND`. Results go to stdout, all other text to stderr."""

from __future__ import annotations

import errno
import logging
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final

from auditor.cli.help import make_parser
from auditor.cli.output import heard, log_to_stderr, say, talk
from auditor.cli.process_end import GivenUp, leave
from auditor.errors import AuditorError, UsageError

COMPLETION: Final = "_ARGCOMPLETE"
"""Environment variable that a shell sets when it asks for completions."""

_OUTPUT_REFUSED: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command, and return its exit code, 0 to 4. Every failure is one sentence on stderr."""
    return leave(_run(arguments))


def _run(arguments: Sequence[str] | None) -> int:
    _open_closed_streams()
    parser = make_parser()
    if COMPLETION in os.environ:
        import_module("auditor.cli.commands.rules").complete(parser)
    given = list(sys.argv[1:] if arguments is None else arguments)
    verbose = 0
    try:
        if not given:
            parser.print_help()
            return UsageError.exit_code  # nothing was audited: no success for a script
        options = parser.parse_args([*given[1:], "--help"] if given[0] == "help" else given)
        talk.quiet, talk.progress, verbose = options.quiet, not options.no_progress, options.verbose
        log_to_stderr(verbose)
        code: int = options.run(options)
        sys.stdout.flush()
    except AuditorError as error:
        return _fail(str(error), error, verbose, error.exit_code)
    except BrokenPipeError:
        _forget_stdout()
        return 1
    except OSError as error:
        if error.errno not in _OUTPUT_REFUSED or error.filename is not None:
            return _bug(error, verbose)
        _forget_stdout()
        return _fail(f"the results cannot be written ({error.strerror}): check where stdout goes", error, 0, 1)
    except KeyboardInterrupt:
        return _fail("interrupted before anything was audited", None, 0, 4)
    except GivenUp as error:  # a second signal
        return _fail(str(error) or "stopped at once; finished work is kept", None, 0, 4)
    except Exception as error:  # a traceback is a bug: say so in one sentence
        return _bug(error, verbose)
    finally:
        heard()
    return code


def _open_closed_streams() -> None:
    """Open /dev/null for each closed standard stream: otherwise the next opened file gets its descriptor, 0 to 2."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w", encoding="utf-8"))  # noqa: SIM115


def _forget_stdout() -> None:
    """Write what is left to nowhere: the reader is gone, or the interpreter writes a second complaint at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _bug(error: Exception, verbose: int) -> int:
    return _fail(f"this is a bug, please report it: {type(error).__name__}: {error}", error, verbose, 1)


def _fail(sentence: str, error: BaseException | None, verbose: int, code: int) -> int:
    if verbose and error is not None:
        logging.getLogger("auditor").error("the error in full", exc_info=error)
    say(sentence)
    return code
