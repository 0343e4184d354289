"""A process that is killed in mid-message leaves half a line, which is no message."""

from __future__ import annotations

import asyncio
import logging

import pytest

from auditor.audit.divided.messages import LONGEST, Report, line_of, report_from, whole_lines

LOGGED = Report(log=(logging.WARNING, "auditor", "a key with\na newline " * 500))


@pytest.mark.parametrize("cut", [0, 1, 5000])
async def test_half_a_message_is_none(cut: int) -> None:
    stream = asyncio.StreamReader(limit=LONGEST)
    stream.feed_data(line_of(Report()) + line_of(LOGGED) + line_of(LOGGED)[:cut])
    stream.feed_eof()
    assert [report_from(line) async for line in whole_lines(stream)] == [Report(), LOGGED]
