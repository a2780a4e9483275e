//! The two machines, played from the scripts in `testdata`.
//!
//! A script is a conversation: what happens, four dashes, what the machine then wants done. Times are milliseconds
//! since the script's beginning; `~` marks a rounded one. `LEASEHOLD_REWRITE=1 cargo test --test scripts` writes what
//! the machines do now into the scripts; read the difference before you commit it.

mod scripts {
    pub(crate) mod campaign;
    pub(crate) mod command;
    pub(crate) mod datafile;
    pub(crate) mod show;
    pub(crate) mod tenure;
}

/// One test a script, named like it, and one that finds scripts nobody plays.
macro_rules! scripts {
    ($machine:ident: $($name:ident)*) => {
        mod $machine {
            $(#[test]
            fn $name() {
                let mut stage = super::scripts::$machine::Stage::default();
                super::scripts::datafile::play(stringify!($machine), stringify!($name), |c| stage.play(c));
            })*

            #[test]
            fn every_script_is_played() {
                let played = std::collections::BTreeSet::from([$(stringify!($name).to_owned()),*]);
                assert_eq!(super::scripts::datafile::names(stringify!($machine)), played);
            }
        }
    };
}

scripts! { tenure:
    renewals_are_sent_every_third_of_the_ttl
    trust_counts_from_the_sending
    an_acquire_answered_too_late_is_no_term
    one_failed_renewal_loses_nothing
    a_dead_store_ends_the_term_at_the_deadline
    not_being_the_holder_ends_it_at_once
    a_hung_attempt_leaves_room_for_another
    late_answers_of_abandoned_attempts
    jeopardy_is_announced_once_per_trouble
    the_last_call_comes_one_grace_before_the_end
    without_a_pulse_nothing_is_renewed
    a_higher_fence_at_a_resource_ends_it
    a_doubt_has_the_store_asked_at_once
    a_store_that_must_be_mended_is_asked_until_the_deadline
    more_time_than_was_asked_for_is_reported_not_trusted
    sleeping_past_the_deadline_is_the_end
}

scripts! { campaign:
    a_vacant_lease_is_won_at_once
    a_held_lease_is_looked_at_when_it_should_expire
    the_first_in_line_bids_at_once
    others_wait_their_turn_and_stand_down
    news_that_overtook_an_answer_is_not_forgotten
    a_reserved_lease_is_bid_for_by_the_heir_alone
    trying_once_takes_busy_for_an_answer
    an_unknown_outcome_is_asked_about_again
    a_refusal_settles_no_unknown_outcome
    a_spent_attempt_is_replaced_by_a_new_one
    what_may_have_been_won_is_undone_when_patience_ends
    a_late_yes_is_a_no
    a_store_that_can_never_work_ends_it
    refusals_are_answered_with_growing_patience
    time_running_out_names_the_last_obstacle
    the_highest_fence_is_remembered
    a_store_that_contradicts_itself_is_not_hammered
}
