//! Small libraries in front of the C library, by which a test changes what one process is told by its system.

use std::{
    fs,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    process::Command,
};

/// A compiled library, and the file by which it is steered while the process runs.
#[derive(Debug)]
struct Shim {
    library: PathBuf,
    switch: PathBuf,
    variable: &'static str,
}

impl Shim {
    fn new(dir: &Path, name: &str, source: &str, variable: &'static str, at_first: &[u8]) -> Self {
        let library = dir.join(format!("{name}.so"));
        let switch = dir.join(format!("{name}.switch"));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("shim").join(source);
        let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        let built = Command::new(&compiler)
            .args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"])
            .args([&library, &source])
            .arg("-ldl")
            .output()
            .unwrap_or_else(|error| panic!("no C compiler {compiler:?}: {error}"));
        assert!(built.status.success(), "{source:?}: {}", String::from_utf8_lossy(&built.stderr));
        fs::write(&switch, at_first).expect("a writable test directory");
        Self { library, switch, variable }
    }

    /// In place and whole, for the process has the file mapped. It counts from the next time that the library looks.
    fn set(&self, value: &[u8]) {
        let switch = fs::OpenOptions::new().write(true).open(&self.switch).expect("the switch");
        switch.write_all_at(value, 0).expect("a writable test directory");
    }

    fn environment(&self) -> [(&'static str, &Path); 2] {
        [("LD_PRELOAD", &self.library), (self.variable, &self.switch)]
    }
}

/// A wall clock that can be stepped: a shift is added to all that the process reads of the wall clock, and of no other
/// clock.
#[derive(Debug)]
pub struct WallClock(Shim);

impl WallClock {
    /// A wall clock that is right as yet. Its files go below `dir`, under this name.
    ///
    /// # Panics
    /// If its library cannot be compiled: the C compiler that builds SQLite builds this too.
    #[must_use]
    pub fn new(dir: &Path, name: &str) -> Self {
        Self(Shim::new(dir, name, "wall_clock.c", "WALL_CLOCK_SHIFT", &0_i64.to_ne_bytes()))
    }

    /// Steps the clock to so many seconds before (or, negative, behind) the right time.
    pub fn step_to(&self, seconds: f64) {
        let micros = (seconds * 1e6) as i64;
        self.0.set(&micros.to_ne_bytes());
    }

    pub(crate) fn environment(&self) -> [(&'static str, &Path); 2] {
        self.0.environment()
    }
}

/// A disk that can be full: while it is, whatever would make a file grow or change fails with ENOSPC.
#[derive(Debug)]
pub struct FullDisk(Shim);

impl FullDisk {
    /// A disk that has room as yet. Its files go below `dir`, under this name.
    ///
    /// # Panics
    /// If its library cannot be compiled: the C compiler that builds SQLite builds this too.
    #[must_use]
    pub fn new(dir: &Path, name: &str) -> Self {
        Self(Shim::new(dir, name, "full_disk.c", "FULL_DISK", &[0]))
    }

    /// From now on the disk is full, or has room again.
    pub fn set(&self, full: bool) {
        self.0.set(&[u8::from(full)]);
    }

    pub(crate) fn environment(&self) -> [(&'static str, &Path); 2] {
        self.0.environment()
    }
}
