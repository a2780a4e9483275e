//! Fan-out: one leader reads a feed and delivers it to all replicas, which serve it to their clients.
//!
//! ```text
//!  parent process                        replica process (r1, r2, r3 …)
//!  ┌──────────────────────────┐          ┌──────────────────────────────────────────────┐
//!  │ feed      GET /events    │◀─────────┤ fan_out  reader → backlog → one lane a replica │
//!  │ directory GET /replicas  │          │   │      (only while leading)                  │
//!  │                          │          │   ▼ POST /deliver, Fence-Token: 7              │
//!  │ client of r1             │◀── ws ───┤ gate     refuses lower fences, keeps a journal │
//!  └──────────────────────────┘          └──────────────────────────────────────────────┘
//! ```
//! # Map
//! * The words: [`event`], [`report`] (what a replica tells its parent), [`args`].
//! * The parent's servers: [`feed`] and the [`ticker`] that drives it, [`directory`], both behind [`upstream`].
//! * A replica: [`replica`] (its process), [`gate`] and [`journal`] (the fenced resource), [`endpoint`] (HTTP and
//!   WebSocket), [`leader`] (the election), [`fan_out`], [`backlog`], [`lane`] and [`courier`] (what a leader does).
//! * Handing over: [`handoffs`].
//! * The play: [`stage`] (starting and signalling processes), [`chronicle`] (all that happened), [`story`] (telling it
//!   as it happens), [`scenario`], [`client`] and [`ledger`] (what clients got).
//! * The verdict: [`timeline`], [`checks`], [`chart`], [`outcome`].

pub mod args;
pub mod backlog;
pub mod chart;
pub mod checks;
pub mod chronicle;
pub mod client;
pub mod courier;
pub mod directory;
pub mod endpoint;
pub mod event;
pub mod fan_out;
pub mod feed;
pub mod gate;
pub mod handoffs;
pub mod journal;
pub mod lane;
pub mod leader;
pub mod ledger;
pub mod outcome;
pub mod replica;
pub mod report;
pub mod scenario;
pub mod stage;
pub mod story;
pub mod ticker;
pub mod timeline;
pub mod upstream;
