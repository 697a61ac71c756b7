//! On which CPUs an attempt of a container runs.

use std::time::Duration;

use corten_meta::Time;

use crate::CpuSet;

/// How long until what failed is tried again.
const RETRY: Duration = Duration::from_secs(10);

/// What is known of where one attempt of a container runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pinned {
    /// The attempt, and the CPUs it was given.
    pub(crate) given: Option<(String, CpuSet)>,
    /// The attempt that is being started is given these.
    starting_with: Option<CpuSet>,
    /// These are on their way.
    pub(crate) in_flight: Option<(String, CpuSet)>,
    pub(crate) retry_at: Option<Time>,
}

impl Pinned {
    pub(crate) fn begin(&mut self, cpus: CpuSet) {
        self.starting_with = Some(cpus);
    }

    pub(crate) fn started(&mut self, id: &str) {
        self.given = self.starting_with.take().map(|it| (id.to_owned(), it));
    }

    /// How it ended.
    pub(crate) fn done(&mut self, is_done: bool, now: Time) {
        let Some(asked) = self.in_flight.take() else { return };
        if is_done {
            (self.given, self.retry_at) = (Some(asked), None);
        } else {
            self.retry_at = Some(now.after(RETRY));
        }
    }
}
