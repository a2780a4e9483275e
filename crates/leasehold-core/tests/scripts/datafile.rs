//! Reads a script, plays its commands, and compares, or rewrites, what they answer.

use super::command::{Command, Mistake};
use std::{collections::BTreeSet, env, fmt::Write, fs, path::PathBuf};

fn folder(machine: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata").join(machine)
}

/// The names of a machine's scripts.
pub(crate) fn names(machine: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(folder(machine)).expect("the scripts are part of the repository");
    let name = |path: PathBuf| {
        (path.extension()? == "txt")
            .then(|| path.file_stem().map(|stem| stem.to_string_lossy().into_owned()))?
    };
    entries.filter_map(|entry| name(entry.expect("readable").path())).collect()
}

/// Plays `testdata/MACHINE/NAME.txt`.
///
/// # Panics
/// If a command answers something else than the script says, with every difference.
pub(crate) fn play(machine: &str, name: &str, mut act: impl FnMut(Command) -> Result<String, Mistake>) {
    let path = folder(machine).join(format!("{name}.txt"));
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let rewrite = env::var_os("LEASEHOLD_REWRITE").is_some_and(|v| v == "1");
    let (mut rewritten, mut complaints, mut played) = (String::new(), String::new(), 0);
    let mut commands = Vec::new();
    let mut lines = text.lines().enumerate().peekable();
    while let Some((number, line)) = lines.next() {
        let _ = writeln!(rewritten, "{line}");
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        if line != "----" {
            commands.push(line);
            continue;
        }
        let mut expected = String::new();
        while let Some((_, line)) = lines.next_if(|(_, line)| !line.trim().is_empty()) {
            let _ = writeln!(expected, "{line}");
        }
        let mut actual = String::new();
        for command in commands.drain(..) {
            played += 1;
            let answer = Command::parse(command).and_then(&mut act);
            actual += &answer
                .unwrap_or_else(|mistake| panic!("{}:{}: {command}: {mistake}", path.display(), number));
        }
        rewritten += &actual;
        if actual != expected {
            let _ = write!(
                complaints,
                "\n{}:{}\nthe script says:\n{expected}the machine says:\n{actual}",
                path.display(),
                number + 1
            );
        }
    }
    assert!(commands.is_empty(), "{}: no ---- after {commands:?}", path.display());
    assert!(played > 0, "{}: no command", path.display());
    if rewrite {
        if rewritten != text {
            fs::write(&path, rewritten).expect("LEASEHOLD_REWRITE=1 needs a writable checkout");
        }
    } else {
        assert!(complaints.is_empty(), "{complaints}\n(LEASEHOLD_REWRITE=1 accepts what the machine says)");
    }
}
