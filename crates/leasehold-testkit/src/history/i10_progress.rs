//! **I10**: with the store up and a willing candidate, a vacancy is filled within a bound.

use super::{
    Event, Violation, What,
    terms::{by_lease, claims},
};
use std::{collections::BTreeMap, time::Duration};

/// Checks every vacancy after all faults have ended ([`What::Healed`]): it must not last longer than `bound` while at
/// least one replica wants the lease and nothing keeps it from asking. `until` is the end of the observation.
#[must_use]
pub fn check(history: &[Event], bound: Duration, until: u64) -> Vec<Violation> {
    let Some(healed) = history.iter().find(|event| event.what == What::Healed) else {
        return vec![Violation::new("I10", "nothing was healed, so nothing can be said", [] as [&Event; 0])];
    };
    let mut violations = Vec::new();
    for events in by_lease(history).into_values() {
        // Since when somebody has wanted it without a break.
        let mut wanting: BTreeMap<&str, bool> = BTreeMap::new();
        let mut demand: Vec<(u64, u64)> = Vec::new();
        for event in &events {
            let before = wanting.values().any(|wants| *wants);
            match event.what {
                What::Wanted => wanting.insert(&event.replica, true),
                What::Unwanted => wanting.insert(&event.replica, false),
                _ => continue,
            };
            match (before, wanting.values().any(|wants| *wants)) {
                (false, true) => demand.push((event.at, until)),
                (true, false) => demand.last_mut().expect("demand began before").1 = event.at,
                _ => {}
            }
        }
        let claims = claims(&events);
        let ends = claims.iter().map(|claim| (claim.end, Some(claim.last)));
        for (n, (end, last)) in std::iter::once((0, None)).chain(ends).enumerate() {
            let vacant = (end.max(healed.at), claims.get(n).map_or(until, |next| next.grant.at));
            for wanted in &demand {
                let (from, to) = (vacant.0.max(wanted.0), vacant.1.min(wanted.1));
                if to.saturating_sub(from) > bound.as_nanos() as u64 {
                    let lasted = Duration::from_nanos(to - from);
                    let problem = format!("wanted and vacant for {lasted:?}, longer than {bound:?}");
                    let shown = last.into_iter().chain(claims.get(n).map(|next| next.grant));
                    violations.push(Violation::new("I10", problem, shown));
                }
            }
        }
    }
    violations
}
