//! Real servers on free ports, in directories of their own, ended with their test.

use crate::process::{Process, Signal};
use std::{
    ffi::OsString,
    fmt, io,
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::Duration,
};
use tempfile::TempDir;

/// How often a server is started before its end is taken for its own fault, not for that of a port.
const ATTEMPTS: usize = 5;
/// Between two attempts to have the same port again.
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(100);

/// The arguments of a server, given its directory and its port.
pub type Args = Arc<dyn Fn(&Path, u16) -> Vec<OsString> + Send + Sync>;

/// How to start a server.
#[derive(Clone)]
pub struct Recipe {
    /// The program: a name to be found on the path, or a path.
    pub program: PathBuf,
    /// Its arguments. What it reads may be written into its directory meanwhile. Asked for at each attempt: one that loses
    /// its port to somebody else gets another port and another directory.
    pub args: Args,
    /// Variables to set.
    pub env: Vec<(OsString, OsString)>,
    /// Under whose name it runs; `None`: whoever runs the test. Its directory belongs to that user, too.
    pub user: Option<User>,
    /// When it is ready.
    pub ready: Ready,
    /// How long it may take to be ready, and to end when asked to.
    pub within: Duration,
}

impl fmt::Debug for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Recipe({}, ready: {:?})", self.program.display(), self.ready)
    }
}

/// A user of the system, by numbers. Only root can start something for another user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct User {
    /// Who.
    pub uid: u32,
    /// And of which group.
    pub gid: u32,
}

/// When a server is ready.
#[derive(Debug, Clone, Copy)]
pub enum Ready {
    /// When its port takes connections. It cannot tell whether a stranger has the port: better have it say a line.
    Port,
    /// When it printed a line with this text on its standard output.
    Line(&'static str),
    /// When it printed a line with this text on its standard error.
    ErrorLine(&'static str),
}

/// Why a server is not there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The program is not installed. A test may skip then, if it says so.
    #[error("{0} is not installed")]
    NotInstalled(PathBuf),
    /// The system could not start it, or had no port or directory for it.
    #[error("the server could not be started: {0}")]
    Io(#[from] io::Error),
    /// It ended instead of serving.
    #[error("{program} ended instead of serving: {output}")]
    Ended {
        /// The program.
        program: PathBuf,
        /// What it printed.
        output: String,
    },
    /// It was not ready in time, and was killed.
    #[error("{program} was not ready within {within:?}: {output}")]
    NotReady {
        /// The program.
        program: PathBuf,
        /// The time it had.
        within: Duration,
        /// What it printed.
        output: String,
    },
}

/// A running server. Dropping it kills it and removes its directory.
#[derive(Debug)]
pub struct Server {
    // Before the directory: it is killed first.
    process: Process,
    recipe: Recipe,
    addr: SocketAddr,
    dir: TempDir,
}

impl Server {
    /// Starts a server on a free port of this host, with an empty directory, and waits until it is ready.
    ///
    /// # Errors
    /// [`StartError`] says why there is none.
    pub async fn start(recipe: Recipe) -> Result<Self, StartError> {
        // A port that is free now may be taken before the server has it: then another one is tried, in another directory,
        // for what was written into the first one names the port.
        let mut last = None;
        for _ in 0..ATTEMPTS {
            let dir = TempDir::with_prefix("leasehold-")?;
            let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
            match launch(&recipe, dir.path(), addr).await {
                Ok(process) => return Ok(Self { process, recipe, addr, dir }),
                Err(ended @ StartError::Ended { .. }) => last = Some(ended),
                Err(other) => return Err(other),
            }
        }
        Err(last.unwrap_or_else(|| io::Error::other("no attempt was made").into()))
    }

    /// Where it listens. A restart keeps it.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Its directory. A restart keeps it.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Its process.
    pub const fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Freezes it: connections stay up, and nobody answers.
    pub fn pause(&self) {
        self.process.pause();
    }

    /// Lets it run on.
    pub fn resume(&self) {
        self.process.resume();
    }

    /// Kills it, as a crash would, and waits for its end.
    pub async fn kill(&mut self) {
        self.process.kill();
        self.process.exit(self.recipe.within).await;
    }

    /// Asks it to end in order, and waits for its end.
    pub async fn stop(&mut self) {
        self.process.signal(Signal::TERM);
        self.process.exit(self.recipe.within).await;
    }

    /// Starts it again, on its port and in its directory. A server that still runs is killed first.
    ///
    /// # Errors
    /// [`StartError`] says why it did not come back.
    pub async fn restart(&mut self) -> Result<(), StartError> {
        if self.process.is_running() {
            self.kill().await;
        }
        // Somebody else may have the port for a moment, for a connection of his own.
        for _ in 1..ATTEMPTS {
            match launch(&self.recipe, self.dir.path(), self.addr).await {
                Ok(process) => {
                    self.process = process;
                    return Ok(());
                }
                Err(StartError::Ended { .. }) => tokio::time::sleep(BETWEEN_ATTEMPTS).await,
                Err(other) => return Err(other),
            }
        }
        self.process = launch(&self.recipe, self.dir.path(), self.addr).await?;
        Ok(())
    }
}

/// A port that nobody has just now.
pub(crate) fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

async fn launch(recipe: &Recipe, dir: &Path, addr: SocketAddr) -> Result<Process, StartError> {
    if let Some(user) = recipe.user {
        std::os::unix::fs::chown(dir, Some(user.uid), Some(user.gid))?;
    }
    let mut command = Command::new(&recipe.program);
    command.args((recipe.args)(dir, addr.port())).envs(recipe.env.iter().cloned()).current_dir(dir);
    if let Some(user) = recipe.user {
        command.uid(user.uid).gid(user.gid);
    }
    let mut process = Process::spawn(&mut command).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => StartError::NotInstalled(recipe.program.clone()),
        _ => StartError::Io(error),
    })?;
    let ready = async {
        match recipe.ready {
            Ready::Port => {
                while TcpStream::connect_timeout(&addr, Duration::from_millis(100)).is_err() {
                    if !process.is_running() {
                        return false;
                    }
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                // A stranger may have the port while ours could not bind it.
                process.is_running()
            }
            Ready::Line(text) => process.said(text, Duration::MAX).await,
            Ready::ErrorLine(text) => process.complained(text, Duration::MAX).await,
        }
    };
    let in_time = tokio::time::timeout(recipe.within, ready).await;
    match in_time {
        Ok(true) => return Ok(process),
        // Its output ends a moment before it does.
        Ok(false) => process.ended(Duration::from_secs(1)).await,
        Err(_) => {}
    }
    let (stdout, stderr) = process.printed();
    let (program, output) = (recipe.program.clone(), format!("{stdout}\n{stderr}").trim().to_owned());
    Err(if process.is_running() {
        StartError::NotReady { program, within: recipe.within, output }
    } else {
        StartError::Ended { program, output }
    })
}
