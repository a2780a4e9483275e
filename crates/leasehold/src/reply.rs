//! Answers to requests between actors: always a cast back, never a call inside a handler.

use std::fmt;

/// Takes the answer to one request, usually by casting it to the actor that asked.
pub(crate) struct Reply<T>(Box<dyn FnOnce(T) + Send>);

impl<T> Reply<T> {
    pub(crate) fn new(deliver: impl FnOnce(T) + Send + 'static) -> Self {
        Self(Box::new(deliver))
    }

    pub(crate) fn send(self, answer: T) {
        (self.0)(answer);
    }
}

impl<T> fmt::Debug for Reply<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reply")
    }
}

/// Does something when it is dropped: tells of the end of a task, say, whatever ended it.
pub(crate) struct OnDrop<F: FnMut()>(pub(crate) F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}
