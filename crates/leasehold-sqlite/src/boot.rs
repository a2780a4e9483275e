//! This boot of this host: its id, and the clock that all its processes share.

use leasehold_core::{BootClock, Clock, Moment, StoreErrorKind};
use std::sync::Arc;

/// The host's boot clock, the same in every process of the host.
///
/// A Linux time namespace shifts the boot clock of the processes inside it (containers restored from a checkpoint
/// have one). The kernel tells the shift, and this clock takes it off again: otherwise processes inside and outside
/// would judge each other's leases by clocks that have nothing in common.
#[derive(Debug, Clone, Copy, Default)]
pub struct HostClock {
    // How far this process's clock runs before (or, negative, behind) the host's, in nanoseconds.
    ahead: i128,
}

impl HostClock {
    /// The clock of this process's host.
    #[must_use]
    pub fn new() -> Self {
        let offsets = std::fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default();
        Self { ahead: ahead(&offsets) }
    }

    /// Whether this process lives in a time namespace whose clock is shifted.
    #[must_use]
    pub const fn is_shifted(&self) -> bool {
        self.ahead != 0
    }
}

impl Clock for HostClock {
    fn now(&self) -> Moment {
        let host = i128::from(BootClock.now().as_nanos()) - self.ahead;
        Moment::from_nanos(u64::try_from(host.max(0)).unwrap_or(u64::MAX))
    }
}

/// Reads the line `boottime SECONDS NANOSECONDS`; a kernel without time namespaces has no such file, and no shift.
fn ahead(offsets: &str) -> i128 {
    let shift = |line: &str| {
        let mut words = line.split_whitespace().skip(1).map(str::parse::<i64>);
        let (seconds, nanos) = (words.next()?.ok()?, words.next()?.ok()?);
        Some(i128::from(seconds) * 1_000_000_000 + i128::from(nanos))
    };
    offsets.lines().find(|line| line.starts_with("boottime")).and_then(shift).unwrap_or(0)
}

/// The id of this boot. The boot clock begins anew with each boot, so a time is worth nothing without it.
///
/// Linux draws a random id at each boot (`/proc/sys/kernel/random/boot_id`); macOS and FreeBSD tell one through
/// `sysctl`.
pub(crate) fn boot_id() -> Result<Arc<str>, StoreErrorKind> {
    let found = if cfg!(any(target_os = "linux", target_os = "android")) {
        std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()
    } else {
        ["kern.bootsessionuuid", "kern.boot_id"].into_iter().find_map(sysctl)
    };
    let id = found.unwrap_or_default().trim().to_owned();
    if id.is_empty() {
        return Err(StoreErrorKind::Config(
            "this system does not tell which boot it is in (Linux: is /proc mounted?), and without that the leases \
             of an earlier boot cannot be told from those of this one"
                .into(),
        ));
    }
    Ok(id.into())
}

fn sysctl(name: &str) -> Option<String> {
    let output = std::process::Command::new("sysctl").args(["-n", name]).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_shifted_clock_is_shifted_back() {
        assert_eq!(ahead(""), 0);
        assert_eq!(ahead("monotonic           0         0\nboottime            0         0\n"), 0);
        assert_eq!(ahead("monotonic 5 0\nboottime    -3600  250\n"), -3_600_000_000_000 + 250);
        assert_eq!(ahead("boottime x y"), 0);
        let clock = HostClock { ahead: -3_600_000_000_000 };
        let shift = clock.now().since(BootClock.now());
        assert!(shift > Duration::from_secs(3599) && shift <= Duration::from_secs(3600), "{shift:?}");
    }

    #[test]
    fn a_boot_has_one_id() {
        assert_eq!(boot_id().unwrap(), boot_id().unwrap());
    }
}
