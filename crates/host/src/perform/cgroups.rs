//! Pods' cgroups, made, changed and taken away, and how long that takes.

use std::{io, time::Instant};

use corten_machine::Cgroups;

use super::Inner;

impl Inner {
    /// Does something with cgroups beside all else. `operation`: upstream's name for it.
    pub(super) async fn on_cgroups<T: Send + 'static>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&Cgroups) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let cgroups = self.cgroups.clone();
        let timed = move || {
            let begun = Instant::now();
            let done = work(&cgroups);
            (done, begun.elapsed())
        };
        let (done, took) = tokio::task::spawn_blocking(timed).await.map_err(io::Error::other)?;
        self.counters.note_cgroups(operation, took);
        done
    }
}
