"""[prices] of auditor.toml, and the list that it replaces."""

from __future__ import annotations

from pathlib import Path

import pytest

from auditor.config.file import load
from auditor.config.layers import resolve
from auditor.errors import ConfigError
from auditor.s3.prices import in_dollars, prices_with


def loaded(folder: Path, text: str) -> dict[str, object]:
    path = folder / "auditor.toml"
    path.write_text(text, encoding="utf-8")
    layer, tables = load(str(path))
    return dict(resolve([layer], tables).prices)


def test_a_price_replaces_that_of_the_list(tmp_path: Path) -> None:
    table = loaded(tmp_path, "[prices]\nlist = 0.0054\nSTANDARD = 1\n[prices.retrieval]\nGLACIER_IR = 0.04\n")
    prices = prices_with(table)
    assert (in_dollars(prices.list), in_dollars(prices.of_object_call("STANDARD"))) == (0.0000054, 0.001)
    assert in_dollars(prices.of_object_call("STANDARD_IA")) == 0.000001
    assert in_dollars(prices.of_bytes("GLACIER_IR", 5 * 10**9)) == 0.2
    assert prices.replaced == ("STANDARD", "list", "retrieval.GLACIER_IR")


def test_a_mistake_is_one_sentence(tmp_path: Path) -> None:
    classes = "use list, data_event, inventory, retrieval or a storage class"
    for text, words in (
        ("prices = 3", "prices is not a table: write [prices]"),
        ("[prices]\nLISTS = '1'", "[prices]: LISTS is '1': give dollars for each 1,000 requests, from 0 to 1,000"),
        *((f"[prices]\nlist = {text}", "list is '") for text in ("-1", "nan", "inf", "true")),
        ("[prices]\nget = 1", f"the key 'get' is unknown: {classes}"),
        ("[prices]\nretrieval = 1", "[prices.retrieval] is not a table: write its keys below it, as KEY = VALUE"),
        ("[prices.retrieval]\nia = 1", "[prices.retrieval]: the key 'ia' is unknown: use a storage class like"),
        ("[prices.retrieval]\nSTANDARD_IA = 1001", "give dollars for each GB"),
    ):
        with pytest.raises(ConfigError) as error:
            loaded(tmp_path, text)
        assert (words in str(error.value), "\n" in str(error.value)) == (True, False), str(error.value)
