//! Threads for requests that are much work for the processor: of their own, so that no other request waits behind them.

use std::io;

use http_body::Body;
use tokio::runtime::{Builder, Handle, Runtime};

/// To read, check and write so much takes milliseconds, and what is larger up to a second.
const LIGHT_BYTES_MAX: u64 = 64 * 1024;

/// Documents may be 128 levels deep, and each level takes some frames. Only what is used of it becomes memory.
const STACK_BYTES: usize = 8 * 1024 * 1024;

/// Is a request with this body much work? One that does not say how long it is may be.
pub fn is_heavy(body: &impl Body) -> bool {
    body.size_hint().upper().is_none_or(|it| it > LIGHT_BYTES_MAX)
}

/// A runtime beside the one that serves connections. The kernel shares the cores out between both.
pub struct HeavyLane(Option<Runtime>);

impl HeavyLane {
    /// # Errors
    /// The machine has no more threads.
    pub fn start() -> io::Result<Self> {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let mut runtime = Builder::new_multi_thread();
        runtime.worker_threads((cores / 2).max(1)).thread_name("heavy requests").thread_stack_size(STACK_BYTES);
        Ok(Self(Some(runtime.enable_all().build()?)))
    }

    pub fn handle(&self) -> &Handle {
        self.0.as_ref().expect("it is there until it is dropped").handle()
    }
}

impl Drop for HeavyLane {
    fn drop(&mut self) {
        // It may be dropped where nothing may block.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http_body_util::{BodyExt, Empty, Full, StreamBody};

    use super::*;

    #[test]
    fn what_is_large_or_says_nothing_is_heavy() {
        let of = |n: usize| Full::new(Bytes::from(vec![b' '; n]));
        assert!(!is_heavy(&Empty::<Bytes>::new()) && !is_heavy(&of(64 * 1024)));
        assert!(is_heavy(&of(64 * 1024 + 1)));
        let endless = futures_util::stream::pending::<Result<http_body::Frame<Bytes>, io::Error>>();
        assert!(is_heavy(&StreamBody::new(endless).boxed_unsync()));
    }

    #[tokio::test]
    async fn work_is_done_on_threads_of_its_own_which_may_end_anywhere() {
        let lane = HeavyLane::start().expect("there are threads");
        let work = lane.handle().spawn(async { std::thread::current().name().map(ToOwned::to_owned) });
        assert_eq!(work.await.expect("it ends").as_deref(), Some("heavy requests"));
        drop(lane);
    }
}
