//! A command that failed, told to people on standard error and to programs that asked for JSON on standard output.

use std::{borrow::Cow, fmt::Write as _};

use serde::Serialize;

/// An error that comes with what to do about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    pub message: String,
    /// Facts that help, a line each.
    pub details: Vec<String>,
    /// The command to run next.
    pub next: Option<String>,
    /// What could not be seen.
    pub unknown: Vec<String>,
}

impl std::error::Error for Failure {}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl Failure {
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }

    #[must_use]
    pub fn next(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }

    /// As people read it.
    pub fn text(&self) -> String {
        let mut text = self.message.clone();
        let details = self.details.iter().map(String::as_str);
        let next = self.next.iter().map(|it| format!("run next:      {it}"));
        let unknown = self.unknown.iter().map(|it| format!("not known:     {it}"));
        for line in details.map(str::to_owned).chain(next).chain(unknown) {
            write!(text, "\n{line}").expect("writing to memory does not fail");
        }
        text
    }
}

/// What `-o json` prints of an error.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report<'a> {
    api_version: &'static str,
    kind: &'static str,
    code: u8,
    message: String,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    details: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    unknown: &'a [String],
}

/// The error as text, with its causes, and as JSON.
pub fn told(error: &anyhow::Error, code: u8) -> (String, impl Serialize + '_) {
    let failure = error.downcast_ref::<Failure>();
    let message = format!("{error:#}");
    let text = failure.map_or_else(|| message.clone(), Failure::text);
    let json = Report {
        api_version: "corten.dev/v1",
        kind: "Error",
        code,
        message,
        details: failure.map_or(&[], |it| &it.details),
        next: failure.and_then(|it| it.next.as_deref()).map(Cow::from),
        unknown: failure.map_or(&[], |it| &it.unknown),
    };
    (text, json)
}

/// What `-o json` prints of a command line that cannot be read.
pub fn misused(error: &clap::Error, code: u8) -> impl Serialize + use<> {
    let text = error.render().to_string();
    // Tips, usage and where help is follow the first paragraph.
    let first = text.split("\n\n").next().unwrap_or_default();
    let message = first.split_whitespace().collect::<Vec<_>>().join(" ");
    let usage = text.split("Usage: ").nth(1).unwrap_or("corten");
    let words = usage.split_whitespace().take_while(|it| it.starts_with(|it: char| it.is_ascii_lowercase()));
    let command = words.collect::<Vec<_>>().join(" ");
    Report {
        api_version: "corten.dev/v1",
        kind: "Error",
        code,
        message: message.trim_start_matches("error: ").to_owned(),
        details: &[],
        next: Some(Cow::from(format!("{command} --help"))),
        unknown: &[],
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;
    use serde_json::json;

    use super::*;

    #[test]
    fn people_and_programs_are_told_the_same() {
        let failure = Failure {
            unknown: vec!["the list of pods".into()],
            ..Failure::new("no such pod").next("kubectl get pods")
        };
        let error = anyhow::Error::new(failure);
        let (text, json) = told(&error, 1);
        assert_eq!(text, "no such pod\nrun next:      kubectl get pods\nnot known:     the list of pods");
        assert_eq!(
            serde_json::to_value(json).expect("JSON"),
            json!({ "apiVersion": "corten.dev/v1", "kind": "Error", "code": 1, "message": "no such pod",
                    "next": "kubectl get pods", "unknown": ["the list of pods"] })
        );
        let error = Err::<(), _>(std::io::Error::other("it is gone")).context("reading x").expect_err("an error");
        let (text, json) = told(&error, 1);
        assert_eq!(text, "reading x: it is gone");
        let json = serde_json::to_value(json).expect("JSON");
        assert_eq!(json, json!({ "apiVersion": "corten.dev/v1", "kind": "Error", "code": 1, "message": text }));
    }
}
