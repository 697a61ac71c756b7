//! Work that takes longer than others should wait behind it on the same thread.

use std::{future, pin::pin};

use tokio::{
    runtime::{Handle, RuntimeFlavor},
    task,
};

/// Does it on this thread, which the runtime replaces meanwhile. A runtime of one thread has no other.
pub fn apart<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|it| it.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => task::block_in_place(work),
        _ => work(),
    }
}

/// Work with waits in it, each step of which is done [`apart`].
pub async fn stepwise<T>(work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    future::poll_fn(|context| apart(|| work.as_mut().poll(context))).await
}
