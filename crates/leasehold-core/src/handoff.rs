//! Passing a lease on: how an incumbent ends its term in favour of a successor.
//!
//! ```text
//! incumbent                        store                         successor
//!    │ ── Propose ───────────────────────────────────────────────► │ warms up
//!    │ ◄────────────────────────────────────────── Ready │ Decline │
//!    │ worker quiesces; renewals go on                             │
//!    │ worker joined: the only gate (I6)                           │
//!    │ ── release(heir, window, note) ─► │  the one commit point   │
//!    │ ── Yours ─────────────────────────│───────────────────────► │
//!    │                                   │ ◄────────────── acquire │
//!    │ ◄─────────────────────────────────│──────────────── Assumed │
//! ```
//!
//! Two pure machines, [`Incumbent`] and [`Successor`], and the [`Letter`]s between them. Letters only speed things up:
//! the record in the store decides who holds. A letter that is lost, late, doubled or forged costs time, never safety.
//!
//! # Map
//! * [`Ask`] and [`Plan`]: what is wanted, and how long each step may take.
//! * [`Letter`], [`Message`]: what is said; [`wire`]: in which bytes. [`request`]: asking for it by letter.
//! * [`Preference`]: when leadership moves by itself to a candidate of higher priority.
//! * [`Incumbent`] with [`incumbent::Event`] and [`incumbent::Action`]; [`Ending`]: how it came out.
//! * [`Successor`] with [`successor::Event`] and [`successor::Action`].

pub mod ask;
pub mod ending;
pub mod id;
pub mod incumbent;
pub mod letter;
pub mod plan;
pub mod preference;
pub mod request;
pub mod step;
pub mod successor;
pub mod wire;

pub use ask::{Ask, Otherwise, To};
pub use ending::{Ending, Kept, Vacated};
pub use id::HandoffId;
pub use incumbent::Incumbent;
pub use letter::{Letter, Message};
pub use plan::Plan;
pub use preference::Preference;
pub use step::Step;
pub use successor::Successor;
