//! What holds for the machines whatever happens to them. A failure prints the shortest story that was found, and
//! writes its seed down, so that it is told again.

mod properties {
    use proptest::{prelude::ProptestConfig, test_runner::FileFailurePersistence};

    mod campaign;
    mod herd;
    mod tenure;
    mod world;

    fn config(cases: u32) -> ProptestConfig {
        let seeds = FileFailurePersistence::WithSource("regressions");
        ProptestConfig { cases, failure_persistence: Some(Box::new(seeds)), ..ProptestConfig::default() }
    }
}
