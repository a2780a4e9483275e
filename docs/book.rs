//! The code in the book and in the README is documentation that runs: each Rust block is a test of this crate.
//!
//! A page with Rust in it has a line here. Lines that begin with `# ` are run and not shown, in the book as in rustdoc.

macro_rules! pages {
    ($($name:ident = $page:literal;)*) => { $(#[cfg(doctest)] #[doc = include_str!($page)] mod $name {})* };
}

pages! {
    readme = "../README.md";
    quick_start = "guide/quick-start.md";
    leases = "guide/leases.md";
    elections = "guide/elections.md";
    fences = "guide/fences.md";
    postgres = "guide/postgres.md";
    workers = "guide/workers.md";
    testing = "guide/testing.md";
}
