"""A process that is killed in mid-message leaves half a line, which is no message."""

from __future__ import annotations

import asyncio
import logging

import pytest

from auditor.audit.divided.messages import LONGEST, Report, report_from, report_line, whole_lines

LOGGED = Report(log=(logging.WARNING, "auditor", "a key with\na newline " * 500))


@pytest.mark.parametrize("cut", [0, 1, 5000])
async def test_half_a_message_is_none(cut: int) -> None:
    stream = asyncio.StreamReader(limit=LONGEST)
    stream.feed_data(report_line(Report()) + report_line(LOGGED) + report_line(LOGGED)[:cut])
    stream.feed_eof()
    assert [report_from(line) async for line in whole_lines(stream)] == [Report(), LOGGED]
