//! The time of one answer. It runs while the client is waited for, and not while the server has nothing to send.

use std::time::Duration;

use tokio::time::Instant;

/// What any answer may take to be read, beside what its size gives it.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
/// Who reads slower than this does not read.
pub(super) const BYTES_PER_SECOND_MIN: u64 = 16 * 1024;

pub(super) struct Progress {
    used: Duration,
    /// Since when it runs.
    since: Option<Instant>,
    /// Bytes that hyper has taken and not sent yet.
    taken: u64,
    sent: u64,
    /// Has hyper asked for more, which is not there yet?
    is_server_late: bool,
}

impl Progress {
    pub(super) fn begin(now: Instant) -> Self {
        Self { used: Duration::ZERO, since: Some(now), taken: 0, sent: 0, is_server_late: false }
    }

    pub(super) fn took(&mut self, bytes: u64, now: Instant) {
        self.taken += bytes;
        self.is_server_late = false;
        self.since.get_or_insert(now);
    }

    pub(super) fn sent(&mut self, bytes: u64, now: Instant) {
        self.taken -= bytes;
        self.sent += bytes;
        self.rest_for_server(now);
    }

    /// There is no more of it yet.
    pub(super) fn waits_for_server(&mut self, now: Instant) {
        self.is_server_late = true;
        self.rest_for_server(now);
    }

    fn rest_for_server(&mut self, now: Instant) {
        if self.is_server_late
            && self.taken == 0
            && let Some(since) = self.since.take()
        {
            self.used += now - since;
        }
    }

    /// `None` while the server is waited for.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let allowed = PATIENCE + Duration::from_secs(self.sent / BYTES_PER_SECOND_MIN);
        self.since.map(|it| it + allowed.saturating_sub(self.used))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn time_runs_while_the_client_is_waited_for() {
        let at = |seconds: u64| Instant::now() + Duration::from_secs(seconds);
        let mut answer = Progress::begin(at(0));
        assert_eq!(answer.deadline(), Some(at(60)), "nobody has asked for its body");
        answer.waits_for_server(at(10));
        assert_eq!(answer.deadline(), None);
        answer.took(BYTES_PER_SECOND_MIN, at(100));
        assert_eq!(answer.deadline(), Some(at(150)), "ten seconds are used");
        answer.waits_for_server(at(110));
        assert_eq!(answer.deadline(), Some(at(150)), "what was taken is not sent");
        answer.sent(BYTES_PER_SECOND_MIN, at(120));
        assert_eq!(answer.deadline(), None);
        answer.took(1, at(1000));
        assert_eq!(answer.deadline(), Some(at(1031)), "thirty are used, and one is earned");
    }
}
