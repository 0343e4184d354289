"""The manifest suite, run over each form."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor.ledger.manifests import FORMS
from tests.conformance.manifests import CHECKS, ManifestCheck


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("form", FORMS)
def test_form_writes_and_reads_alike(check: ManifestCheck, form: str, tmp_path: Path) -> None:
    check(FORMS[form], tmp_path)
