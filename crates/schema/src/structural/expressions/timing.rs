//! How long the rules of each part of a schema take. A mind has no clock: who wants to know brings one.

use std::{
    cell::RefCell,
    rc::Rc,
    time::{Duration, Instant},
};

thread_local! {
    static WATCH: RefCell<Option<Watch>> = const { RefCell::new(None) };
}

#[derive(Clone)]
struct Watch {
    now: fn() -> Instant,
    tell: Rc<dyn Fn(Duration)>,
}

/// Does something, and tells of each part of a schema how long its rules took meanwhile on this thread: to be compiled, or to be
/// asked about one value together with what the value holds (apiserver's `cel/metrics`, as `Compile` and `Validator.validate`
/// observe them).
pub fn timed<T>(now: fn() -> Instant, tell: impl Fn(Duration) + 'static, run: impl FnOnce() -> T) -> T {
    let before = WATCH.replace(Some(Watch { now, tell: Rc::new(tell) }));
    let _restored = Restored(before);
    run()
}

/// Also after a panic: the thread goes on to other requests.
struct Restored(Option<Watch>);

impl Drop for Restored {
    fn drop(&mut self) {
        WATCH.set(self.0.take());
    }
}

/// Tells how long it lived, where somebody asked.
pub(super) struct Part(Option<(Instant, Watch)>);

impl Part {
    pub(super) fn begun() -> Self {
        Self(WATCH.with_borrow(Clone::clone).map(|it| ((it.now)(), it)))
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if let Some((begun, watch)) = &self.0 {
            (watch.tell)((watch.now)().saturating_duration_since(*begun));
        }
    }
}
