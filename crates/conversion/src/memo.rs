//! Objects in other versions for what is computed without waiting: what is not known is noted, asked, and computed again.
//!
//! Server-side apply and the tracking of owners compare an object in every version that an owner speaks in. They are pure; their
//! webhook is not.

use corten_kinds::Kinds;
use corten_meta::Status;
use parking_lot::Mutex;
use serde_json::Value;

use crate::Conversion;

/// So often is computed again: an apply asks for the object before, what is left of it, and the outcome.
pub const ROUNDS_MAX: usize = 8;

/// What one request has learnt.
#[derive(Default)]
pub struct Memo(Mutex<Vec<Entry>>);

struct Entry {
    object: Value,
    /// The `apiVersion`.
    to: String,
    /// `None` as long as nobody has answered; the inner one where there is no answer.
    known: Option<Option<Value>>,
}

impl Memo {
    /// The object in this version. `None` where it is not known, or not known yet: see [`Memo::is_wanting`].
    pub fn look(&self, object: &Value, to: &str) -> Option<Value> {
        if object["apiVersion"] == *to {
            return Some(object.clone());
        }
        let mut entries = self.0.lock();
        if let Some(entry) = entries.iter().find(|it| it.to == to && it.object == *object) {
            return entry.known.clone().flatten();
        }
        entries.push(Entry { object: object.clone(), to: to.to_owned(), known: None });
        None
    }

    /// Was something asked that nobody has answered? Then what was computed counts for nothing.
    pub fn is_wanting(&self) -> bool {
        self.0.lock().iter().any(|it| it.known.is_none())
    }

    fn wanted(&self) -> Vec<(usize, Value, String)> {
        let entries = self.0.lock();
        let wanted = entries.iter().enumerate().filter(|it| it.1.known.is_none());
        wanted.map(|(at, it)| (at, it.object.clone(), it.to.clone())).collect()
    }
}

impl Conversion {
    /// Finds out what was asked.
    ///
    /// # Errors
    /// 500 where the webhook does not convert an object.
    pub async fn answer(&self, memo: &Memo, kinds: &Kinds) -> Result<(), Status> {
        for (at, object, to) in memo.wanted() {
            let row = object["kind"].as_str().and_then(|it| kinds.by_kind(&to, it));
            let known = match row {
                Some(row) => Some(self.object(&row, object).await?),
                None => None,
            };
            memo.0.lock()[at].known = Some(known);
        }
        Ok(())
    }

    /// As [`Self::answer`]; what cannot be converted is not known.
    pub async fn answer_what_can_be(&self, memo: &Memo, kinds: &Kinds) {
        if self.answer(memo, kinds).await.is_err() {
            memo.0.lock().iter_mut().filter(|it| it.known.is_none()).for_each(|it| it.known = Some(None));
        }
    }
}
