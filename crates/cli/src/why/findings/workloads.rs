//! Workloads that are what they should be, because they should be nothing; quotas that are full.

use corten_meta::Quantity;
use serde_json::Value;

use super::found::Findings;
use crate::why::{State, fields::text};

pub(super) fn scaled(object: &Value, found: &mut Findings) {
    let is_leaving = object["metadata"]["deletionTimestamp"].is_string();
    let left = object["status"]["replicas"].as_i64().unwrap_or(0);
    if object["spec"]["replicas"] == 0 && left == 0 && !is_leaving && found.waits.is_empty() {
        found.verdict = Some((State::Fine, "it is scaled to 0 and runs no pod".into()));
    }
}

/// A full quota waits for nobody; it is others who wait for it.
pub(super) fn quota(object: &Value, found: &mut Findings) {
    let hard = object["status"]["hard"].as_object().into_iter().flatten();
    let full = hard.filter_map(|(resource, hard)| {
        let hard = hard.as_str()?;
        let used = text(&object["status"]["used"], &format!("/{}", resource.replace('/', "~1")));
        let is_full = used.parse::<Quantity>().ok()? >= hard.parse::<Quantity>().ok()?;
        is_full.then(|| format!("{resource} {used} of {hard}"))
    });
    let full: Vec<String> = full.collect();
    if !full.is_empty() && found.waits.is_empty() {
        let message = format!("it is full, and what asks for more is refused: {}", full.join(", "));
        found.verdict = Some((State::Fine, message));
    }
}
