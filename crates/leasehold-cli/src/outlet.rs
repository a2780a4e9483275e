//! Lines that leave the program without ever making it wait.
//!
//! A pipe whose reader has stopped, a full disk or a dead network file system blocks whoever writes to it. The thread
//! that renews a lease must not be that one, and standard error cannot be made non-blocking, since the command shares
//! it. So a thread of its own writes, from a short queue; what does not fit is dropped and counted.

use rustix::{
    fs::{Mode, OFlags},
    io::{Errno, write},
};
use std::{
    fs::File,
    path::{Path, PathBuf},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    time::Duration,
};

/// So many lines wait for a slow reader before the next ones are dropped.
const QUEUE: usize = 1024;

static STDERR: OnceLock<Outlet> = OnceLock::new();

/// Where lines go. Cheap to clone; the clones share one queue.
#[derive(Debug, Clone)]
pub struct Outlet {
    /// `None` if the thread could not be started: then everything is dropped.
    queue: Option<SyncSender<Job>>,
    dropped: Arc<AtomicU64>,
}

#[derive(Debug)]
enum Job {
    Line(Vec<u8>),
    Flush(SyncSender<()>),
}

impl Outlet {
    /// The one outlet to standard error; made at its first use.
    pub fn stderr() -> &'static Self {
        STDERR.get_or_init(|| Self::start(Target::Stderr))
    }

    /// Lets standard error catch up, if anything was ever written to it, but not longer than `within`.
    pub fn flush_stderr(within: Duration) {
        if let Some(stderr) = STDERR.get() {
            stderr.flush(within);
        }
    }

    /// An outlet that appends to a file, made if it is missing, or to a FIFO, which need not have a reader yet.
    ///
    /// # Errors
    /// What the operating system says if `path` cannot be opened for appending. Later failures only cost lines.
    pub fn append(path: &Path) -> Result<Self, Errno> {
        let mut target = Target::Path { path: path.to_owned(), open: None };
        match target.reopen() {
            Ok(()) | Err(Errno::NXIO) => Ok(Self::start(target)),
            Err(errno) => Err(errno),
        }
    }

    fn start(target: Target) -> Self {
        let (queue, jobs) = sync_channel(QUEUE);
        let dropped = Arc::new(AtomicU64::new(0));
        let lost = dropped.clone();
        let thread = std::thread::Builder::new()
            .name("leasehold-outlet".into())
            .stack_size(128 * 1024)
            .spawn(move || write_all(target, &jobs, &lost));
        Self { queue: thread.ok().map(|_| queue), dropped }
    }

    /// Sends one line, which must end with a newline, or drops it. Never waits.
    pub fn put(&self, line: Vec<u8>) {
        let sent = self.queue.as_ref().is_some_and(|queue| queue.try_send(Job::Line(line)).is_ok());
        if !sent {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many lines were dropped so far.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Waits until everything put before has been written or dropped, but not longer than `within`. Blocks its thread:
    /// for the end of the program.
    pub fn flush(&self, within: Duration) -> bool {
        let (done, written) = sync_channel(1);
        let asked = self.queue.as_ref().is_some_and(|queue| queue.try_send(Job::Flush(done)).is_ok());
        asked && written.recv_timeout(within).is_ok()
    }
}

#[derive(Debug)]
enum Target {
    Stderr,
    Path { path: PathBuf, open: Option<File> },
}

impl Target {
    fn reopen(&mut self) -> Result<(), Errno> {
        if let Self::Path { path, open } = self {
            // Without NONBLOCK a FIFO that nobody reads would hold the program at its start.
            let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::NONBLOCK | OFlags::CLOEXEC;
            *open = None;
            *open = Some(File::from(rustix::fs::open(&*path, flags, Mode::from_raw_mode(0o666))?));
        }
        Ok(())
    }

    /// One write(2), so that lines of several processes in one file stay whole.
    fn write(&mut self, line: &[u8]) -> Result<usize, Errno> {
        let once = |line: &[u8], target: &Self| match target {
            Self::Stderr => rustix::io::retry_on_intr(|| write(rustix::stdio::stderr(), line)),
            Self::Path { open: Some(file), .. } => rustix::io::retry_on_intr(|| write(file, line)),
            Self::Path { open: None, .. } => Err(Errno::PIPE),
        };
        match once(line, self) {
            // The reader of a FIFO went away, and another may have come.
            Err(Errno::PIPE) if matches!(self, Self::Path { .. }) => {
                self.reopen()?;
                once(line, self)
            }
            done => done,
        }
    }
}

fn write_all(mut target: Target, jobs: &Receiver<Job>, lost: &AtomicU64) {
    // After a line of which only the beginning could be written, so that the next one can be read.
    let mut torn = false;
    while let Ok(job) = jobs.recv() {
        match job {
            Job::Line(mut line) => {
                if torn {
                    line.insert(0, b'\n');
                }
                match target.write(&line) {
                    Ok(written) if written == line.len() => torn = false,
                    Ok(written) => {
                        torn |= written > 0;
                        lost.fetch_add(1, Ordering::Relaxed);
                    }
                    Err(_) => {
                        lost.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
            Job::Flush(done) => {
                done.send(()).ok();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    const SOON: Duration = Duration::from_secs(10);

    #[test]
    fn lines_are_appended_whole_and_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events");
        std::fs::write(&path, "old\n").unwrap();
        let outlet = Outlet::append(&path).unwrap();
        outlet.put(b"one\n".to_vec());
        outlet.put(b"two\n".to_vec());
        assert!(outlet.flush(SOON));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "old\none\ntwo\n");
        assert_eq!(outlet.dropped(), 0);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_full_disk_costs_lines_and_nothing_else() {
        let outlet = Outlet::append(Path::new("/dev/full")).unwrap();
        for _ in 0..3 {
            outlet.put(b"lost\n".to_vec());
        }
        assert!(outlet.flush(SOON));
        assert_eq!(outlet.dropped(), 3);
    }

    #[test]
    fn a_fifo_without_a_reader_delays_nobody_and_a_later_reader_gets_the_later_lines() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("fifo");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        let outlet = Outlet::append(&path).unwrap();
        outlet.put(b"nobody\n".to_vec());
        assert!(outlet.flush(SOON));
        assert_eq!(outlet.dropped(), 1);

        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        let mut reader = File::from(rustix::fs::open(&path, flags, Mode::empty()).unwrap());
        outlet.put(b"somebody\n".to_vec());
        assert!(outlet.flush(SOON));
        let mut read = [0; 64];
        let n = reader.read(&mut read).unwrap();
        assert_eq!(&read[..n], b"somebody\n");

        drop(reader);
        outlet.put(b"gone\n".to_vec());
        assert!(outlet.flush(SOON));
        assert_eq!(outlet.dropped(), 2);
    }

    #[test]
    fn a_path_that_cannot_be_opened_is_an_error_at_once() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Outlet::append(&dir.path().join("none/events")).unwrap_err(), Errno::NOENT);
        assert_eq!(Outlet::append(dir.path()).unwrap_err(), Errno::ISDIR);
    }
}
