"""The conformance suite of engines: each check takes a world, fills it, and opens an engine for it.

Give each check an empty world of its own. A failed check raises AssertionError; no test framework is needed.
"""

from __future__ import annotations

from typing import Final

from . import bodies, listings, objects
from .world import EngineCheck, EngineWorld

__all__ = ["CHECKS", "EngineCheck", "EngineWorld"]

CHECKS: Final[tuple[EngineCheck, ...]] = (
    listings.lists_every_page_in_key_order,
    listings.lists_from_a_prefix_and_after_a_key,
    listings.lists_versions_and_delete_markers_over_pages,
    listings.lists_versions_after_a_whole_key,
    listings.lists_an_empty_bucket_as_one_empty_page,
    listings.lists_odd_keys_as_they_are,
    listings.lists_versions_of_odd_keys_as_they_are,
    listings.takes_odd_keys_as_prefix_and_start_after,
    objects.reads_odd_keys_as_they_are,
    objects.invents_no_values_of_a_bare_object,
    objects.gives_checksums_only_when_asked,
    objects.reads_the_checksums_and_holds_that_s3_has_since_2026,
    objects.gives_grants_in_order,
    objects.reads_an_acl_without_grants,
    objects.reads_the_named_version,
    objects.fails_for_a_key_that_is_not_there,
    bodies.reads_pieces_no_larger_than_asked,
    bodies.reads_an_empty_object,
    bodies.refuses_an_object_that_was_overwritten,
    bodies.reads_a_span,
    bodies.refuses_a_span_beyond_the_end,
    bodies.refuses_an_archived_object,
    bodies.goes_on_after_a_body_left_half_read,
)
