//! **I2**: fences of a lease strictly increase over all grants.

use super::{Event, Step, Violation, What, terms::by_lease};

/// Checks grants in the store's order, and among the replicas those whose order is certain: a request that was sent
/// after another's answer had come.
#[must_use]
pub fn check(history: &[Event]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for events in by_lease(history).into_values() {
        let mut last: Option<&Event> = None;
        for event in &events {
            if matches!(event.what, What::Held { by: Step::Grant, .. }) {
                if let Some(last) = last
                    && event.fence <= last.fence
                {
                    let problem = format!("the store issued {} after {}", event.fence, last.fence);
                    violations.push(Violation::new("I2", problem, [last, event]));
                }
                last = Some(event);
            }
        }
        violations.extend(among_replicas(&events));
    }
    violations
}

fn among_replicas(events: &[&Event]) -> Vec<Violation> {
    let sent = |event: &Event| if let What::Granted { sent, .. } = event.what { Some(sent) } else { None };
    // By their answers, and again by their requests.
    let answers: Vec<&Event> = events.iter().copied().filter(|event| sent(event).is_some()).collect();
    let mut requests = answers.clone();
    requests.sort_by_key(|event| sent(event));
    let mut answered = answers.into_iter().peekable();
    let mut highest: Option<&Event> = None;
    let mut violations = Vec::new();
    for request in requests {
        while let Some(answer) = answered.next_if(|answer| Some(answer.at) < sent(request)) {
            if highest.is_none_or(|high| high.fence < answer.fence) {
                highest = Some(answer);
            }
        }
        if let Some(high) = highest
            && request.fence <= high.fence
        {
            let problem = format!("{} was granted after {}", request.fence, high.fence);
            violations.push(Violation::new("I2", problem, [high, request]));
        }
    }
    violations
}
