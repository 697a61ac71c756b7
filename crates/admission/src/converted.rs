//! A request's objects in the versions that others are shown them in: what one webhook or policy had converted, the next one is shown.

use std::collections::VecDeque;

use corten_conversion::Conversion;
use corten_kinds::Kind;
use corten_meta::Status;
use serde_json::Value;
use tokio::sync::Mutex;

/// The old and the new object in four versions each: more are converted again.
const KEPT_MAX: usize = 8;

/// Of one request. Whoever has an object converted has the turn: others that want the same find it.
#[derive(Default)]
pub struct ConvertedObjects(Mutex<VecDeque<Converted>>);

struct Converted {
    version: String,
    of: Value,
    made: Value,
}

impl ConvertedObjects {
    /// The object in the version of `row`.
    ///
    /// # Errors
    /// 500 where a webhook must convert it, and does not.
    pub(crate) async fn get(&self, conversion: &Conversion, row: &Kind, object: Value) -> Result<Value, Status> {
        let version = row.resource.api_version();
        let asks_others = row.versions.as_ref().is_some_and(|it| it.webhook.is_some());
        if !asks_others || object["apiVersion"] == version {
            return conversion.object(row, object).await;
        }
        let mut kept = self.0.lock().await;
        if let Some(known) = kept.iter().find(|it| it.version == version && it.of == object) {
            return Ok(known.made.clone());
        }
        let made = conversion.object(row, object.clone()).await?;
        if kept.len() == KEPT_MAX {
            kept.pop_front();
        }
        kept.push_back(Converted { version, of: object, made: made.clone() });
        Ok(made)
    }
}
