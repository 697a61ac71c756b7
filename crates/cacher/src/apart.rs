//! Work that takes longer than others should wait behind it on the same thread.

use std::{future, pin::pin, sync::LazyLock};

use tokio::{
    runtime::{Handle, RuntimeFlavor},
    sync::Semaphore,
    task,
};

/// So many are at much work at the same time: a processor is left for all others, where there are several.
static TURNS: LazyLock<Semaphore> = LazyLock::new(|| {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Semaphore::new(cores.saturating_sub(1).max(1))
});

/// Does it on this thread, which the runtime replaces meanwhile. A runtime of one thread has no other.
pub fn apart<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|it| it.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => task::block_in_place(work),
        _ => work(),
    }
}

/// Much work, [`apart`], and only so much of it at a time that others are worked on meanwhile.
pub async fn in_turn<T>(work: impl FnOnce() -> T) -> T {
    let turn = TURNS.acquire().await;
    let done = apart(work);
    drop(turn);
    done
}

/// Work with waits in it, each step of which is done [`apart`].
pub async fn stepwise<T>(work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    future::poll_fn(|context| apart(|| work.as_mut().poll(context))).await
}
