//! A process and what it started, as `/proc` tells it. Elsewhere the process group is all there is.

use rustix::process::Pid;
use std::{collections::HashMap, fs, time::Duration};

/// The process and its descendants, parents first: a frozen parent starts no more children.
pub(super) fn of(root: Pid) -> Vec<Pid> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let id = entry.file_name().to_str().and_then(|name| name.parse().ok());
        if let Some(id) = id
            && let Some((_, parent)) = stat(id)
        {
            children.entry(parent).or_default().push(id);
        }
    }
    let mut family = vec![root.as_raw_nonzero().get()];
    let mut next = 0;
    while let Some(member) = family.get(next) {
        family.extend(children.remove(member).unwrap_or_default());
        next += 1;
    }
    family.into_iter().filter_map(Pid::from_raw).collect()
}

/// Waits until the process is stopped or gone: a stop signal is delivered soon, not at once.
pub(super) fn wait_until_stopped(pid: Pid) {
    for _ in 0..2_000 {
        match stat(pid.as_raw_nonzero().get()) {
            // In the kernel (D) it runs no code of its own, and stops on its way out. A shell can stay there: it waits
            // for a child that was frozen between fork and exec.
            Some(('T' | 't' | 'D' | 'Z' | 'X', _)) | None => return,
            Some(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// State and parent. The name before them may hold spaces and parentheses, so they are found from the end.
fn stat(id: i32) -> Option<(char, i32)> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}
