//! **I3**: by the store's clock at most one unexpired claim of a lease exists.

use super::{
    Event, Violation,
    terms::{by_lease, claims},
};

/// Checks the claims as the store told them.
#[must_use]
pub fn check(history: &[Event]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for events in by_lease(history).into_values() {
        let claims = claims(&events);
        for (n, claim) in claims.iter().enumerate() {
            let before = claims[..n].iter().rev().take(8).find(|before| before.end > claim.grant.at);
            if let Some(before) = before {
                let problem = format!("{} was granted while {} lived", claim.fence, before.fence);
                violations.push(Violation::new("I3", problem, [before.grant, before.last, claim.grant]));
            }
        }
    }
    violations
}
