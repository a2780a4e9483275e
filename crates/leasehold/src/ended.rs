//! The end of a child, out of a supervision event.

use ractor::{ActorId, SupervisionEvent};

/// Which child has ended, if the event says that one has.
///
/// The event carries the child's state when it ended in order, or was killed. It may own running things, so it is
/// dropped here, first thing: whoever supervises must not keep it alive.
pub(crate) fn ended(event: SupervisionEvent) -> Option<ActorId> {
    match event {
        SupervisionEvent::ActorTerminated(cell, state, _) => {
            drop(state);
            Some(cell.get_id())
        }
        SupervisionEvent::ActorFailed(cell, _) => Some(cell.get_id()),
        // Not every event is ours to know: ractor may add some.
        _ => None,
    }
}
