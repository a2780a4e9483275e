//! The bell: a file that is written to after each change of hands, so that the watchers of other processes wake.
//!
//! Not the database itself: every renewal writes to that one, and must wake nobody.

use crate::place::Place;
use notify::{
    Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher,
    event::{AccessKind, AccessMode, ModifyKind},
};
use std::{
    fs::File,
    io,
    os::unix::fs::{FileExt, MetadataExt},
    sync::{Mutex, PoisonError},
};

use crate::place::FileId;

/// The ringing side.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    // Kept open between rings.
    file: Mutex<Option<File>>,
}

/// What a listener hears.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Sound {
    /// Somebody changed something.
    Rung,
    /// A witness was closed: its process may have ended.
    Closed(String),
    /// Events were lost.
    Missed,
}

/// The listening side: one subscription to the operating system's events, which ends with it.
#[derive(Debug)]
pub(crate) struct Listener {
    _watcher: RecommendedWatcher,
    // What is listened to. Whoever removes and remakes these files leaves us listening to nothing.
    heard: [Option<FileId>; 2],
}

impl Bell {
    /// Wakes the watchers of all processes. If it fails, their safety poll finds the change later.
    pub(crate) fn ring(&self, place: &Place) {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let rung = (|| -> io::Result<()> {
            // A bell that was removed rings for nobody.
            if file.as_ref().is_none_or(|file| file.metadata().map_or(true, |found| found.nlink() == 0)) {
                *file = Some(place.open_beside(&place.wake).map_err(io::Error::other)?);
            }
            file.as_ref().map_or(Ok(()), |file| file.write_all_at(b"!", 0))
        })();
        if let Err(cause) = rung {
            tracing::debug!(file = %place.wake.display(), %cause, "cannot wake watchers; they will look by themselves");
        }
    }
}

impl Listener {
    /// Listens to the bell and to the witnesses of `place`. `hear` is called on a thread of the listener.
    pub(crate) fn new(place: &Place, hear: impl Fn(Sound) + Send + 'static) -> notify::Result<Self> {
        drop(place.open_beside(&place.wake).map_err(|fault| notify::Error::generic(&fault.to_string()))?);
        place.make_dir(&place.witnesses).map_err(|fault| notify::Error::generic(&fault.to_string()))?;
        let names = place.clone();
        let mut watcher = notify::recommended_watcher(move |event| {
            if let Some(sound) = translate(&names, event) {
                hear(sound);
            }
        })?;
        let heard = Self::present(place);
        watcher.watch(&place.wake, RecursiveMode::NonRecursive)?;
        watcher.watch(&place.witnesses, RecursiveMode::NonRecursive)?;
        Ok(Self { _watcher: watcher, heard })
    }

    /// Whether it still listens to the files that have the names now.
    pub(crate) fn is_sound(&self, place: &Place) -> bool {
        self.heard.iter().all(Option::is_some) && self.heard == Self::present(place)
    }

    fn present(place: &Place) -> [Option<FileId>; 2] {
        [FileId::of(&place.wake), FileId::of(&place.witnesses)]
    }
}

fn translate(place: &Place, event: notify::Result<Event>) -> Option<Sound> {
    let Ok(event) = event else { return Some(Sound::Missed) };
    if event.need_rescan() {
        return Some(Sound::Missed);
    }
    let path = event.paths.first()?;
    match event.kind {
        EventKind::Modify(ModifyKind::Data(_)) if *path == place.wake => Some(Sound::Rung),
        // Feeling a pulse opens and closes the file too, but for reading, which is not told.
        EventKind::Access(AccessKind::Close(AccessMode::Write))
            if path.parent() == Some(&place.witnesses) =>
        {
            Some(Sound::Closed(path.file_name()?.to_str()?.to_owned()))
        }
        _ => None,
    }
}
