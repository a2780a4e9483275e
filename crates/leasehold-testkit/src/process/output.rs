//! What a process prints, line by line.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, BufReader},
    sync::watch,
};

/// Lines as they come, all kept.
#[derive(Debug)]
pub(super) struct Output {
    lines: Arc<Mutex<Vec<String>>>,
    // How many lines there are; closed at the end of the output.
    count: watch::Receiver<usize>,
    given: usize,
}

impl Output {
    pub(super) fn of(stream: Option<impl AsyncRead + Unpin + Send + 'static>) -> Self {
        let lines = Arc::<Mutex<Vec<String>>>::default();
        let (news, count) = watch::channel(0);
        if let Some(stream) = stream {
            let lines = lines.clone();
            tokio::spawn(async move {
                let mut stream = BufReader::new(stream);
                let mut raw = Vec::new();
                while let Ok(1..) = stream.read_until(b'\n', &mut raw).await {
                    let line = String::from_utf8_lossy(&raw).trim_end_matches(['\n', '\r']).to_owned();
                    raw.clear();
                    let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
                    lines.push(line);
                    news.send_replace(lines.len());
                }
            });
        }
        Self { lines, count, given: 0 }
    }

    /// The next line that holds `text`; those before it are passed over. `None` at the end, or when time is up.
    pub(super) async fn line(&mut self, text: &str, within: Duration) -> Option<String> {
        let search = async {
            loop {
                let known = *self.count.borrow_and_update();
                let found = {
                    let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
                    lines[self.given..known].iter().position(|line| line.contains(text))
                };
                if let Some(at) = found {
                    self.given += at + 1;
                    let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
                    return lines.get(self.given - 1).cloned();
                }
                self.given = known;
                // An error says that the output has ended; lines that came right before it are looked at once more.
                if self.count.changed().await.is_err() && *self.count.borrow() == known {
                    return None;
                }
            }
        };
        tokio::time::timeout(within, search).await.ok().flatten()
    }

    pub(super) fn text(&self) -> String {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).join("\n")
    }
}
