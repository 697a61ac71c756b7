//! A request that waits or is answered, as it is shown.

use std::{sync::Arc, time::Duration};

use corten_meta::Time;

/// What a request is about, in the words of its audit record.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestWords<'a> {
    pub flow_schema: &'a str,
    pub distinguisher: &'a str,
    pub user: &'a str,
    pub verb: &'a str,
    pub path: &'a str,
    pub namespace: &'a str,
    pub name: &'a str,
    pub api_group: &'a str,
    pub api_version: &'a str,
    pub resource: &'a str,
    pub subresource: &'a str,
}

const WORDS: usize = 11;

/// One text holds all of its words: every request is described, and few are looked at.
#[derive(Debug)]
pub struct DescribedRequest {
    came: Time,
    text: String,
    /// Where each word ends.
    ends: [usize; WORDS],
}

impl DescribedRequest {
    pub fn new(came: Time, words: &RequestWords<'_>) -> Self {
        let RequestWords { flow_schema, distinguisher, user, verb, path, namespace, name, .. } = *words;
        let RequestWords { api_group, api_version, resource, subresource, .. } = *words;
        let words = [
            flow_schema,
            distinguisher,
            user,
            verb,
            path,
            namespace,
            name,
            api_group,
            api_version,
            resource,
            subresource,
        ];
        let mut text = String::with_capacity(words.iter().map(|it| it.len()).sum());
        let ends = words.map(|it| {
            text.push_str(it);
            text.len()
        });
        Self { came, text, ends }
    }

    pub(crate) fn came(&self) -> Time {
        self.came
    }

    /// As kube-apiserver counts: whatever does not only look.
    pub(crate) fn is_mutating(&self) -> bool {
        !matches!(self.words().verb, "get" | "list" | "watch")
    }

    pub(crate) fn words(&self) -> RequestWords<'_> {
        let mut begin = 0;
        let words = self.ends.map(|end| &self.text[std::mem::replace(&mut begin, end)..end]);
        let [flow_schema, distinguisher, user, verb, path, namespace, name, rest @ ..] = words;
        let [api_group, api_version, resource, subresource] = rest;
        RequestWords {
            flow_schema,
            distinguisher,
            user,
            verb,
            path,
            namespace,
            name,
            api_group,
            api_version,
            resource,
            subresource,
        }
    }
}

/// A request as it stands in a level.
pub(crate) struct StandingRequest {
    /// `None` of one that is answered without having had a queue.
    pub(crate) queue: Option<usize>,
    /// In its queue; `None` of one that is answered.
    pub(crate) index: Option<usize>,
    pub(crate) request: Arc<DescribedRequest>,
    pub(crate) width: u32,
    /// Until it was answered.
    pub(crate) waited: Duration,
}

/// A queue as it stands.
pub(crate) struct Standing {
    pub(crate) waiting: usize,
    pub(crate) executing: u32,
    pub(crate) seats_in_use: u32,
    pub(crate) next_begin: f64,
    pub(crate) seats_waiting: u64,
    pub(crate) work_waiting: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back_as_they_were() {
        let came = Time::from_unix_seconds(0);
        let words =
            RequestWords { flow_schema: "a", verb: "list", path: "/é/x", subresource: "z", ..Default::default() };
        let described = DescribedRequest::new(came, &words);
        let found = described.words();
        assert_eq!(format!("{found:?}"), format!("{words:?}"));
        assert!(!described.is_mutating());
        assert!(DescribedRequest::new(came, &RequestWords { verb: "post", ..words }).is_mutating());
    }
}
