//! What webhooks answer may be megabytes, whatever the request was: to read and to apply it is work others would wait behind.

use corten_cacher::apart::{in_turn, stepwise};

const LARGE_BYTES: usize = 64 * 1024;

/// Does the work on so many bytes. Of much, only so much is done at the same time that others are worked on meanwhile.
pub(super) async fn read<T>(n_bytes: usize, work: impl FnOnce() -> T) -> T {
    if n_bytes > LARGE_BYTES { in_turn(work).await } else { work() }
}

/// Does what goes on with so many bytes.
pub(super) async fn taken<T>(n_bytes: usize, work: impl Future<Output = T>) -> T {
    if n_bytes > LARGE_BYTES { stepwise(work).await } else { work.await }
}
