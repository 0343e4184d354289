"""The libraries' defaults, which the articles' functions use."""

from __future__ import annotations

import os
from typing import Final

ARTICLE_CONNECTIONS: Final = 10
"""botocore's max_pool_connections: https://botocore.amazonaws.com/v1/documentation/api/latest/reference/config.html"""


def default_threads() -> int:
    """The size of the pool behind run_in_executor(None, ..): ThreadPoolExecutor's default max_workers."""
    return min(32, (os.cpu_count() or 1) + 4)
