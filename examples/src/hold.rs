//! A place to stand still, between the last look at the lease and the write.
//!
//! No program can close that window; a process may be stopped in it for as long as the machine likes. So that the
//! examples do not depend on luck, a parent may ask a holder to say when it is there, and stops it (with a real
//! SIGSTOP) while it is. The write that follows after the SIGCONT is the program's ordinary next step.

use std::{
    sync::{
        Condvar, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// The place. It is open unless somebody armed it.
#[derive(Debug, Default)]
pub struct Hold {
    armed: AtomicBool,
    gone_on: Mutex<bool>,
    bell: Condvar,
}

/// A parent that asked for a stop and then forgot it must not hold a replica for ever.
const AT_MOST: Duration = Duration::from_secs(120);

impl Hold {
    /// The next one who comes by stands still.
    pub fn arm(&self) {
        *self.gone_on.lock().unwrap_or_else(PoisonError::into_inner) = false;
        self.armed.store(true, Ordering::Release);
    }

    /// Whoever stands still goes on; the place is open again.
    pub fn go(&self) {
        self.armed.store(false, Ordering::Release);
        *self.gone_on.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.bell.notify_all();
    }

    /// Comes by. If the place is armed: says so, and blocks the thread (not the task: the very point is that nothing
    /// of this program can intervene here) until told to go on. Returns whether it stood still.
    pub fn pass(&self, say: impl FnOnce()) -> bool {
        if !self.armed.swap(false, Ordering::AcqRel) {
            return false;
        }
        say();
        let held = self.gone_on.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = self.bell.wait_timeout_while(held, AT_MOST, |gone_on| !*gone_on);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, mpsc};

    #[test]
    fn only_the_first_to_come_by_stands_still_and_goes_on_when_told() {
        let hold = Arc::new(Hold::default());
        assert!(!hold.pass(|| panic!("not armed")));
        hold.arm();
        let (say, said) = mpsc::channel();
        let held = std::thread::spawn({
            let hold = Arc::clone(&hold);
            move || hold.pass(|| say.send(()).unwrap())
        });
        said.recv().unwrap();
        assert!(!hold.pass(|| panic!("somebody stands there already")));
        assert!(!held.is_finished());
        hold.go();
        assert!(held.join().unwrap());
    }
}
