//! Fan-out: one leader, many replicas.
fn main() {}
