//! Calls that are tried until luck no longer matters.

use std::time::Duration;

use corten_client::Error;
use corten_meta::Retry;

const TRIES: u32 = 4;

/// Tries until there is an answer that does not depend on luck, for a while; says what came of it.
pub(crate) async fn again<T>(mut call: impl AsyncFnMut() -> Result<T, Error>) -> Result<String, String> {
    for _ in 0..TRIES {
        match call().await {
            Ok(_) => return Ok("done".into()),
            Err(error) if error.retry() == Retry::Now && !error.is_already_exists() => {}
            Err(error) if error.retry() == Retry::After => {}
            Err(Error::Status(status)) if matches!(status.code, 403 | 404 | 409) => return Ok(status.reason.clone()),
            Err(error) => return Err(format!("the server refuses what is valid: {error}")),
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    Ok("given up".into())
}
