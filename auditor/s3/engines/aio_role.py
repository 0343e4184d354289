"""The credentials of an assumed role in the form that the asynchronous SDK asks for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from auditor.aws.connection import SharedCredentials


class RoleProvider:
    """The only source of an AioSession's credentials: an assumed role. The SDK's own chain is never searched."""

    def __init__(self, role: SharedCredentials) -> None:
        self._role = role

    async def load_credentials(self) -> AioRoleCredentials:
        return AioRoleCredentials(await asyncio.to_thread(self._role.current))


class AioRoleCredentials:
    """Credentials of an assumed role. While they are renewed, which blocks, the event loop goes on."""

    def __init__(self, shared: Any) -> None:
        """shared: botocore's RefreshableCredentials, which other clients share."""
        self._shared = shared

    def get_deferred_property(self, name: str) -> Callable[[], None]:
        """Return a function that gives a property of the credentials for the host name of an endpoint. Those of S3 have
        none.
        """
        return self.get_account_id

    def get_account_id(self) -> None:
        """The account would be such a property."""
        return

    async def get_frozen_credentials(self) -> Any:
        if self._shared.refresh_needed():
            return await asyncio.to_thread(self._shared.get_frozen_credentials)
        return self._shared.get_frozen_credentials()
