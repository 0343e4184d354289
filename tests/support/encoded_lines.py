"""The lines of a run folder, made from the results of judging: the one place where tests name the encoder."""

from __future__ import annotations

from auditor.model.finding import Judgement
from auditor.model.json_codec import encode_line
from auditor.model.line_records import encode_finding as encode_finding
from auditor.model.line_records import encode_object as encode_object
from auditor.model.line_records import undecided_line


def encode_undecided(judgement: Judgement) -> bytes | None:
    """Return the line of an undecided object, JSON bytes with a newline; None if the object is not undecided."""
    line = undecided_line(judgement)
    return None if line is None else encode_line(line)
