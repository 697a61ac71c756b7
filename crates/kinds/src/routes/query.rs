//! The parameters of a request's query.

use std::time::Duration;

use corten_meta::{Status, number};

/// Decoded query parameters, in order.
#[derive(Clone, Debug, Default)]
pub struct Query(pub Vec<(String, String)>);

impl Query {
    pub fn parse(query: Option<&str>) -> Self {
        Self(form_urlencoded::parse(query.unwrap_or_default().as_bytes()).into_owned().collect())
    }

    /// The first value of `name`; an empty one counts as absent, as upstream.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| &**value).filter(|it| !it.is_empty())
    }

    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| &**value)
    }

    /// `true` and `1` are true, absent is false, as upstream's conversion of query parameters.
    pub fn flag(&self, name: &str) -> bool {
        self.get(name).is_some_and(|it| !matches!(it, "false" | "0" | "False" | "FALSE"))
    }

    /// # Errors
    /// 400 where the value is not an integer of 64 bits, in upstream's words.
    #[expect(clippy::result_large_err, reason = "made once for each refused request")]
    pub fn integer(&self, name: &str) -> Result<Option<i64>, Status> {
        self.get(name).map(number::signed).transpose().map_err(Status::bad_request)
    }

    /// A length of time in seconds; none where it is zero or negative, as upstream. However long, the end of it can be
    /// reckoned.
    ///
    /// # Errors
    /// As of [`Query::integer`].
    #[expect(clippy::result_large_err, reason = "made once for each refused request")]
    pub fn seconds(&self, name: &str) -> Result<Option<Duration>, Status> {
        /// A year: no connection lasts as long.
        const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);
        let seconds = self.integer(name)?.and_then(|it| u64::try_from(it).ok()).filter(|it| *it > 0);
        Ok(seconds.map(|it| Duration::from_secs(it).min(LONGEST)))
    }
}
