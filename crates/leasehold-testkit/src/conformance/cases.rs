//! The one list of all cases; a case that is missing here is dead code, and the compiler says so.

/// Calls a macro with every case, after the given tokens.
#[doc(hidden)]
#[macro_export]
macro_rules! __leasehold_cases {
    ([$($then:tt)*] $($given:tt)*) => {
        $($then)*! { $($given)*
            acquire::rule_01_a_free_lease_is_granted_with_the_first_fence
            acquire::rule_01_of_many_bids_at_once_exactly_one_is_granted
            acquire::rule_01_the_floor_repairs_a_lost_counter
            acquire::rule_01_an_old_floor_changes_nothing
            acquire::rule_02_the_counter_outlives_release_expiry_and_force
            acquire::rule_02_renewing_and_repeating_do_not_move_the_counter
            acquire::rule_04_a_repeated_attempt_gets_the_same_answer_and_more_time
            acquire::rule_04_an_attempt_is_spent_when_its_term_has_ended
            acquire::rule_04_another_attempt_of_the_same_replica_is_another_bidder
            holding::rule_03_renewing_keeps_a_claim_alive
            holding::rule_03_only_the_whole_claim_renews_or_releases
            holding::rule_03_a_late_release_leaves_the_next_holder_alone
            holding::rule_03_a_late_renewal_leaves_the_next_holder_alone
            holding::rule_03_a_repeated_release_says_that_it_was_over
            holding::rule_03_an_expired_claim_is_over_even_if_nobody_took_the_lease
            holding::rule_03_renewals_are_answered_one_by_one_in_their_order
            holding::rule_03_a_claim_on_a_lease_never_held_is_no_claim
            handoff::rule_05_until_the_window_ends_only_the_heir_is_granted
            handoff::rule_05_after_the_window_anyone_is_granted
            handoff::rule_05_an_heir_is_known_by_its_exact_name
            handoff::rule_05_a_repeated_release_does_not_disturb_the_reservation
            predecessor::rule_06_the_first_term_has_no_predecessor
            predecessor::rule_06_every_end_of_a_term_is_told_to_the_next
            predecessor::rule_06_a_witnessed_crash_is_told_to_the_next
            predecessor::rule_06_a_note_goes_to_the_very_next_term_only
            predecessor::rule_06_notes_of_every_size_arrive_as_they_were_given
            predecessor::rule_06_a_note_passed_over_by_an_expiry_is_gone
            predecessor::rule_06_the_trace_of_the_last_step_is_kept
            predecessor::rule_06_force_needs_somebody_and_a_short_reason
            watching::rule_07_the_present_states_come_first
            watching::rule_07_every_change_is_told_vacancy_too
            watching::rule_07_a_watch_sees_its_names_only
            watching::rule_07_a_live_watch_follows_names_that_come_and_go
            watching::rule_07_a_dropped_wait_loses_nothing
            damage::rule_08_a_damaged_record_is_an_error_and_stays_as_it_is
            promises::rule_09_the_promises_make_sense
            promises::rule_10_at_the_last_fence_a_store_refuses
            ttl::rule_11_only_the_clock_of_the_store_ends_a_claim
            ttl::rule_11_what_is_left_shrinks_and_never_exceeds_what_was_asked
            ttl::a_ttl_outside_the_bounds_is_refused_and_changes_nothing
            ttl::a_renewal_outside_the_bounds_is_refused_and_changes_nothing
            ttl::a_fraction_of_a_millisecond_is_never_lost
            names::rule_12_odd_names_are_distinct_leases
            names::rule_12_names_that_collide_in_weak_hashes_are_distinct
            names::rule_12_replicas_are_compared_exactly
            names::rule_12_prefixes_hold_no_wildcards
            listing::a_list_is_ordered_and_complete
            dropped::a_dropped_acquire_was_sent_or_never_asked
            dropped::a_dropped_renewal_leaves_the_claim_alive
            dropped::a_dropped_release_was_sent_or_never_asked
            dropped::every_other_request_may_be_dropped_too
            roster::candidates_are_ranked_by_priority_then_by_arrival
            roster::a_candidacy_ends_by_withdrawal_or_by_silence
            roster::two_processes_with_one_replica_id_are_two_candidates
            letters::a_letter_arrives_whole_wherever_it_was_posted
            letters::a_letter_waits_for_its_reader
            letters::a_letter_is_read_once_and_by_its_addressee
            letters::a_body_above_the_limit_is_refused
            letters::a_pile_of_letters_is_bounded_and_keeps_the_newest
            letters::an_old_letter_is_gone
            gate::a_gate_never_accepts_less_than_it_accepted_before
            gate::a_gate_belongs_to_a_pair_of_resource_and_lease
            gate::a_fence_that_was_never_issued_leaves_no_mark
            gate::a_held_gate_keeps_the_others_out_until_its_guard_is_dropped
            gate::whoever_waited_too_long_at_a_gate_is_stale
            gate::giving_up_at_a_gate_lets_the_next_one_in
        }
    };
}

/// Makes a `#[test]` of each case of the [suite](mod@crate::conformance), over the store that an `async fn() -> Subject` builds.
#[macro_export]
macro_rules! conformance {
    ($build:path) => {
        $crate::__leasehold_cases!([$crate::__leasehold_tests] $build;);
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __leasehold_tests {
    ($build:path; $($group:ident::$case:ident)*) => {
        $(#[test]
        fn $case() {
            $crate::conformance::run(stringify!($case), $build);
        })*
    };
}
