//! Which definitions do not get on, since what the server writes about them is refused: their journals tell it.

use std::collections::BTreeMap;

use corten_meta::Status;
use corten_reconcile::Decision;
use corten_webhook::excerpt;
use parking_lot::Mutex;

/// By the definition's name: what its newest write was refused with, and how often in a row.
#[derive(Default)]
pub struct RefusedDefinitions(Mutex<BTreeMap<String, RefusedWrite>>);

struct RefusedWrite {
    message: String,
    n_in_a_row: u32,
}

impl RefusedDefinitions {
    /// What was refused in one look at all definitions. Whatever else was refused before was not tried again, or went well.
    pub fn replace(&self, refused: &[(String, Status)]) {
        let mut all = self.0.lock();
        let before = std::mem::take(&mut *all);
        for (name, status) in refused {
            let n = before.get(name).map_or(0, |it| it.n_in_a_row);
            let message = excerpt(&status.message).into_owned();
            all.insert(name.clone(), RefusedWrite { message, n_in_a_row: n.saturating_add(1) });
        }
    }

    pub fn of(&self, name: &str) -> Option<Decision> {
        self.0.lock().get(name).map(decision)
    }

    pub fn all(&self) -> Vec<(String, Decision)> {
        self.0.lock().iter().map(|(name, it)| (name.clone(), decision(it))).collect()
    }
}

fn decision(refused: &RefusedWrite) -> Decision {
    Decision {
        by: "definitions".into(),
        error: Some(refused.message.clone()),
        retries: refused.n_in_a_row,
        ..Decision::default()
    }
}
