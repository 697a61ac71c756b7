//! Threads for requests that are much work for the processor: of their own, so that no other request waits behind them.

use std::{io, sync::Arc};

use tokio::runtime::{Builder, Handle, Runtime};

use crate::{Lanes, Others};

/// What the threads of wide answers yield to all others by: where both are ready these have a quarter of a core, which is enough for a
/// lock that one of them holds not to be waited for long.
const NICENESS: i32 = 5;

/// Documents may be 128 levels deep, and each level takes some frames. Only what is used of it becomes memory.
const STACK_BYTES: usize = 8 * 1024 * 1024;

/// The lanes of one server.
pub struct HeavyLanes {
    large_bodies: HeavyLane,
    wide_answers: HeavyLane,
}

impl HeavyLanes {
    /// # Errors
    /// The machine has no more threads.
    pub fn start() -> io::Result<Self> {
        Ok(Self { large_bodies: HeavyLane::for_large_bodies()?, wide_answers: HeavyLane::for_wide_answers()? })
    }

    /// Where connections that come here and their requests run.
    pub fn lanes(&self, others: Arc<Others>) -> Lanes {
        let (wide, large_bodies) = (self.wide_answers.handle().clone(), self.large_bodies.handle().clone());
        Lanes::new(wide, large_bodies, all_but_one(), others)
    }
}

/// A runtime beside the one that serves connections. The kernel shares the cores out between both.
struct HeavyLane(Option<Runtime>);

impl HeavyLane {
    fn for_large_bodies() -> io::Result<Self> {
        Self::start("heavy requests", cores() / 2, 0)
    }

    /// For answers that go through many objects. A core is left for all others, where there are several.
    fn for_wide_answers() -> io::Result<Self> {
        Self::start("wide answers", all_but_one(), NICENESS)
    }

    fn start(name: &str, n_threads: usize, niceness: i32) -> io::Result<Self> {
        let mut runtime = Builder::new_multi_thread();
        runtime.worker_threads(n_threads.max(1)).thread_name(name).thread_stack_size(STACK_BYTES);
        runtime.on_thread_start(move || {
            // Of this thread alone, as Linux has it. Where it is refused the thread is as others are.
            let _refused = rustix::process::nice(niceness);
        });
        Ok(Self(Some(runtime.enable_all().build()?)))
    }

    fn handle(&self) -> &Handle {
        self.0.as_ref().expect("it is there until it is dropped").handle()
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

fn all_but_one() -> usize {
    cores().saturating_sub(1).max(1)
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
    use super::*;

    #[tokio::test]
    async fn work_is_done_on_threads_of_its_own_which_may_end_anywhere() {
        let own = rustix::process::getpriority_process(None).expect("it has one");
        let lanes = [
            (HeavyLane::for_large_bodies(), "heavy requests", 0),
            (HeavyLane::for_wide_answers(), "wide answers", NICENESS),
        ];
        for (lane, name, niceness) in lanes {
            let lane = lane.expect("there are threads");
            let work = lane.handle().spawn(async {
                (std::thread::current().name().map(ToOwned::to_owned), rustix::process::getpriority_process(None))
            });
            assert_eq!(work.await.expect("it ends"), (Some(name.to_owned()), Ok((own + niceness).min(19))));
            drop(lane);
        }
        assert_eq!(rustix::process::getpriority_process(None), Ok(own));
    }
}
