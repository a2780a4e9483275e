//! The handoff: its letters, its machines one by one, and both machines together in every order of events.

mod handoff {
    mod common;
    mod incumbent;
    mod model;
    mod preference;
    mod successor;
    mod wire;
}
