//! Tells when the machine's clock was set: by a person, by the network's time after a first start, or by the end of a
//! suspend. What is due by the wall clock must be looked at then; a monotonic timer does not notice.

use std::io;

use rustix::{
    fd::OwnedFd,
    io::Errno,
    time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime},
};
use tokio::io::unix::AsyncFd;

/// A timer that never rings, and is cancelled where the clock is set (`TFD_TIMER_CANCEL_ON_SET` of `timerfd_create(2)`).
pub struct WallClock(AsyncFd<OwnedFd>);

/// In the year 2200; a timer cannot be set to never.
const NEVER: i64 = 7_258_118_400;

impl WallClock {
    /// # Errors
    /// What the kernel says: no more files can be opened.
    pub fn watch() -> io::Result<Self> {
        let timer = timerfd_create(TimerfdClockId::Realtime, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        let this = Self(registered(timer)?);
        this.arm()?;
        Ok(this)
    }

    /// Returns once the clock has been set since the last call, or since it is watched.
    pub async fn set(&self) {
        loop {
            // Where nothing can be waited for nothing is told: the slower look is left.
            let Ok(mut guard) = self.0.readable().await else { return std::future::pending().await };
            let mut count = [0; 8];
            match rustix::io::read(self.0.get_ref(), &mut count) {
                Err(Errno::CANCELED) => {
                    guard.clear_ready();
                    let _ = self.arm();
                    return;
                }
                Err(Errno::INTR) => {}
                _ => guard.clear_ready(),
            }
        }
    }

    fn arm(&self) -> io::Result<()> {
        let it_value = Timespec { tv_sec: NEVER, tv_nsec: 0 };
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        let flags = TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET;
        timerfd_settime(self.0.get_ref(), flags, &Itimerspec { it_interval, it_value })?;
        Ok(())
    }
}

#[expect(unsafe_code, reason = "the runtime must trust that the file stays open as long as it waits for it")]
fn registered(timer: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: what is registered owns the file, and closes it only when it is no longer registered.
    Ok(unsafe { AsyncFd::register(timer) }?)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rustix::time::{ClockId, clock_gettime, clock_settime};

    use super::*;

    #[tokio::test]
    async fn a_clock_that_is_set_is_told_each_time() {
        let watched = WallClock::watch().expect("watched");
        for _ in 0..2 {
            let told = watched.set();
            let mut told = std::pin::pin!(told);
            let early = tokio::time::timeout(Duration::ZERO, &mut told).await;
            assert!(early.is_err(), "nobody has set it");
            // To what it is: the kernel tells all the same.
            if clock_settime(ClockId::Realtime, clock_gettime(ClockId::Realtime)).is_err() {
                eprintln!("the clock of this machine may not be set: nothing was tested");
                return;
            }
            told.await;
        }
    }
}
