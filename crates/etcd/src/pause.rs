//! How long is waited before something is tried again: longer each time, up to a bound.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(20);
const LONGEST: Duration = Duration::from_secs(1);

pub(crate) struct Pause(Duration);

impl Default for Pause {
    fn default() -> Self {
        Self(FIRST)
    }
}

impl Pause {
    pub(crate) async fn pass(&mut self) {
        let now = self.0;
        self.0 = LONGEST.min(now * 2);
        tokio::time::sleep(now).await;
    }

    pub(crate) fn begin_anew(&mut self) {
        *self = Self::default();
    }
}
