//! Pods that jobs counted on, and that they must count.

use std::collections::BTreeSet;

use serde_json::Value;

/// Pods that have ended well while their job counted on them, by the job's uid.
#[derive(Default)]
pub(crate) struct Successes(std::collections::BTreeMap<String, BTreeSet<String>>);

impl Successes {
    pub(crate) fn note(&mut self, pod: &Value, owner: Option<&Value>) {
        let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
        if let Some(owner) = owner.filter(|it| it["kind"] == "Job" && pod["status"]["phase"] == "Succeeded")
            && is_tracked(pod)
        {
            self.0.entry(text(&owner["uid"])).or_default().insert(text(&pod["metadata"]["uid"]));
        }
    }

    /// A job counts no more successes than there were, and when it is complete all that it asked for.
    pub(crate) fn check(&self, key: &str, job: &Value) -> Result<(), String> {
        let n_counted = job["status"]["succeeded"].as_u64().unwrap_or(0);
        let ended = self.0.get(job["metadata"]["uid"].as_str().unwrap_or_default());
        let n_ended = ended.map_or(0, |it| it.len() as u64);
        if n_counted > n_ended {
            return Err(format!("{key} counts {n_counted} pods that succeeded, there were {n_ended}"));
        }
        let conditions = job["status"]["conditions"].as_array().into_iter().flatten();
        let is_complete = conditions.into_iter().any(|it| it["type"] == "Complete");
        let wanted = job["spec"]["completions"].as_u64().unwrap_or(1);
        if is_complete && n_counted != wanted {
            return Err(format!("{key} is complete with {n_counted} of {wanted} successes"));
        }
        Ok(())
    }
}

pub(crate) fn is_tracked(object: &Value) -> bool {
    let finalizers = object["metadata"]["finalizers"].as_array().into_iter().flatten();
    finalizers.into_iter().any(|it| it == "batch.kubernetes.io/job-tracking")
}
