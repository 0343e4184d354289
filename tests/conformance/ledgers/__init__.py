"""The conformance suite of ledgers: each check takes an opener of an empty ledger. It fails with AssertionError.

A check opens the ledger itself, once or more: give each check a ledger of its own. It needs no test framework.
"""

from __future__ import annotations

from typing import Final

from . import digests, history, leases, notifications, seals
from .base import LedgerCheck, OpenLedger

__all__ = ["CHECKS", "SLOW_CHECKS", "LedgerCheck", "OpenLedger"]

CHECKS: Final[tuple[LedgerCheck, ...]] = (
    digests.recorded_digest_is_known,
    digests.empty_ledger_knows_nothing_and_no_refs_have_no_answers,
    digests.versions_match_when_equal_or_not_known_to_both,
    digests.another_key_etag_or_size_is_another_object,
    digests.another_bucket_is_another_object,
    digests.bucket_and_key_are_not_confused_at_the_slash,
    digests.same_record_twice_writes_nothing_new,
    digests.another_digest_is_a_conflict_and_the_first_one_stays,
    digests.another_size_of_the_same_version_is_a_conflict,
    digests.algorithm_added_later_stands_beside_the_first,
    digests.digests_of_one_object_come_from_rows_with_and_without_its_version,
    digests.versions_that_disagree_say_nothing_of_a_listing_without_versions,
    digests.odd_keys_come_back_unchanged,
    digests.refs_of_one_look_up_are_answered_in_order,
    digests.reader_along_the_listing_answers_as_a_look_up_does,
    digests.two_writers_at_once_leave_one_truth,
    digests.record_is_there_for_the_next_process,
    history.histories_of_all_keys_come_in_order,
    history.record_has_source_time_and_bytes_read,
    history.unknown_key_has_no_record_and_no_history,
    history.the_same_again_adds_nothing_to_the_history,
    history.s3s_word_becomes_ours_when_we_read_the_same,
    history.conflict_is_written_down_and_nothing_else_of_its_entry,
    history.many_at_once_stand_each_for_itself,
    history.verified_is_kept_with_the_digest_and_never_goes_back,
    history.verified_of_another_object_or_algorithm_is_history_and_no_more,
    history.notes_keep_their_order_and_one_that_comes_twice_is_one,
    history.long_text_in_a_line_is_cut,
    history.a_note_alone_makes_no_subject,
    history.without_notifications_the_last_record_comes_last,
    history.expectations_are_kept_by_key_algorithm_and_origin,
    history.retired_key_stays_retired_until_it_is_seen_again,
    history.retirement_is_overruled_by_a_listing_and_by_a_newer_notification,
    history.key_is_retired_when_each_of_its_versions_is,
    history.the_same_key_twice_in_one_import,
    history.subjects_come_in_the_order_of_a_listing_whatever_is_known_of_them,
    history.subjects_below_a_prefix,
    history.reader_that_stops_in_the_middle_leaves_a_ledger_that_works,
    history.long_and_ambiguous_versions_are_told_apart,
    history.two_processes_that_write_one_entry_leave_one_line,
    notifications.deletion_is_known_until_a_newer_notification_says_otherwise,
    notifications.deletion_that_a_later_look_belies_is_not_the_last_word,
    notifications.sequencers_are_compared_as_s3_says,
    notifications.notification_that_comes_twice_is_written_once,
    notifications.notification_without_an_etag_names_no_version,
    notifications.notifications_in_any_order_and_at_once_leave_the_newest,
    notifications.versions_stand_in_the_order_of_their_notifications_not_of_their_hashing,
    notifications.versions_stand_in_the_order_of_notifications_that_have_no_sequencer,
    notifications.version_that_was_written_back_is_the_last_one_again,
    notifications.deletion_of_one_of_several_versions_leaves_the_key,
    notifications.removal_of_a_delete_marker_brings_the_key_back,
    notifications.removal_of_a_delete_marker_that_is_told_first_counts_too,
    notifications.key_is_deleted_when_each_version_was_deleted_for_good,
    notifications.version_that_nobody_recorded_and_that_is_left_keeps_the_key,
    notifications.null_version_is_newer_than_a_deletion_for_good_without_a_sequencer,
    notifications.null_version_can_be_written_again_after_it_was_deleted_for_good,
    notifications.listing_long_after_a_deletion_overrules_it,
    notifications.sequencers_order_versions_though_two_writers_clocks_differ,
    seals.every_row_and_line_is_sealed,
    seals.matches_are_lines_however_many,
    seals.twenty_workers_on_one_key_lose_no_line,
    seals.sound_rows_are_not_healed,
    seals.history_has_the_state_of_each_seal,
    leases.first_claim_is_a_lease_and_the_second_ones_is_held,
    leases.lease_that_ran_out_is_taken_over_with_its_checkpoint_and_the_old_holder_writes_nothing,
    leases.lease_of_a_dead_holder_whose_clock_ran_ahead_lasts_no_longer_than_its_length,
    leases.holder_whose_clock_runs_ahead_keeps_its_lease_while_it_renews_it,
    leases.lease_that_ran_out_and_that_nobody_took_is_renewed,
    leases.works_that_differ_in_one_field_are_two,
    leases.works_that_mean_the_same_are_one,
    leases.renewed_without_a_checkpoint_it_keeps_the_one_before,
    leases.owner_claims_again_what_it_holds_and_its_earlier_lease_is_void,
    leases.work_that_is_done_is_forgotten_but_for_its_fence,
    leases.checkpoint_that_an_item_would_not_hold_is_refused_and_the_one_before_stays,
    leases.of_64_claimants_one_wins,
    leases.of_64_that_take_over_at_once_one_does,
)
SLOW_CHECKS: Final[tuple[LedgerCheck, ...]] = (history.many_subjects_are_read_in_pages_and_each_comes_once,)
"""Checks that write hundreds of keys."""
