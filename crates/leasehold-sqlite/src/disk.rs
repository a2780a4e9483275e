//! The disk under a store: what kind it is, how much room is left.

use leasehold_core::StoreErrorKind;
use rustix::fs::{Access, StatVfsMountFlags};
use std::path::Path;

/// What the operating system tells of a filesystem.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Disk {
    pub(crate) kind: DiskKind,
    /// Bytes that an ordinary user may still write.
    pub(crate) free: u64,
    pub(crate) read_only: bool,
}

/// The kinds that matter to leases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DiskKind {
    /// Nothing is known against it.
    Ordinary,
    /// Forgets everything at shutdown.
    Memory,
    /// One container's own layer, which no other container sees.
    Layer,
    /// Reached through a network or another kernel, by this name.
    Remote(&'static str),
}

impl Disk {
    /// The filesystem of `path`, if the system tells.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let stat = rustix::fs::statvfs(path).ok()?;
        Some(Self {
            kind: kind(path),
            free: stat.f_bavail.saturating_mul(stat.f_frsize),
            read_only: stat.f_flag.contains(StatVfsMountFlags::RDONLY),
        })
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn kind(path: &Path) -> DiskKind {
    let Ok(stat) = rustix::fs::statfs(path) else { return DiskKind::Ordinary };
    // The magic numbers of statfs(2). Its type differs between architectures; 32 bits hold them all.
    match stat.f_type as u32 {
        0x0102_1994 | 0x8584_58F6 => DiskKind::Memory,
        0x794C_7630 => DiskKind::Layer,
        0x0000_6969 => DiskKind::Remote("NFS"),
        0xFF53_4D42 | 0xFE53_4D42 | 0x0000_517B => DiskKind::Remote("SMB"),
        0x6573_5546 => DiskKind::Remote("FUSE"),
        0x0102_1997 => DiskKind::Remote("9P"),
        0x00C3_6400 => DiskKind::Remote("Ceph"),
        0x0BD0_0BD0 => DiskKind::Remote("Lustre"),
        0x5346_414F | 0x6B41_4653 => DiskKind::Remote("AFS"),
        0x0116_1970 => DiskKind::Remote("GFS2"),
        0x7461_636F => DiskKind::Remote("OCFS2"),
        0x4750_4653 => DiskKind::Remote("GPFS"),
        0x786F_4256 => DiskKind::Remote("a VirtualBox folder"),
        _ => DiskKind::Ordinary,
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn kind(_: &Path) -> DiskKind {
    DiskKind::Ordinary
}

/// Why a file could not be opened, read or written, judged from the disk and the file's rights: SQLite reports most
/// of it alike.
pub(crate) fn trouble(db: &Path) -> StoreErrorKind {
    let directory = db.parent().unwrap_or(db);
    match Disk::of(directory) {
        Some(disk) if disk.read_only => return StoreErrorKind::ReadOnly,
        // The last page or two may be kept back for root, or be too few for SQLite's next step.
        Some(disk) if disk.free < 64 * 1024 => return StoreErrorKind::Full,
        _ => {}
    }
    let denied = |path, access| rustix::fs::access(path, access) == Err(rustix::io::Errno::ACCESS);
    if denied(db, Access::READ_OK) || denied(directory, Access::WRITE_OK | Access::EXEC_OK) {
        StoreErrorKind::Denied
    } else if db.exists() {
        StoreErrorKind::Other
    } else {
        StoreErrorKind::Unreachable
    }
}
