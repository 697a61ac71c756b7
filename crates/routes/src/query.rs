//! The parameters of a request's query.

use std::time::Duration;

use corten_meta::{Status, number};

/// Decoded query parameters, in order.
#[derive(Clone, Debug, Default)]
pub struct Query(pub Vec<(String, String)>);

/// `0` and any case of `false` are false. All else is true, nothing too: `?watch` watches (Convert_Slice_string_To_bool).
pub fn is_true(value: &str) -> bool {
    value != "0" && !value.eq_ignore_ascii_case("false")
}

impl Query {
    pub fn parse(query: Option<&str>) -> Self {
        Self(form_urlencoded::parse(query.unwrap_or_default().as_bytes()).into_owned().collect())
    }

    /// The first value of `name`; an empty one counts as absent, as in `url.Values.Get`.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| &**value).filter(|it| !it.is_empty())
    }

    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| &**value)
    }

    /// A boolean, in every spelling that upstream takes; none where it is absent, which some parameters tell from false.
    pub fn flag(&self, name: &str) -> Option<bool> {
        self.all(name).next().map(is_true)
    }

    /// As [`Query::flag`], of one that is false where it is absent.
    pub fn is_set(&self, name: &str) -> bool {
        self.flag(name).unwrap_or_default()
    }

    /// # Errors
    /// 400 where the value is not an integer of 64 bits, in upstream's words.
    #[expect(clippy::result_large_err, reason = "made once for each refused request")]
    pub fn integer(&self, name: &str) -> Result<Option<i64>, Status> {
        self.get(name).map(number::signed).transpose().map_err(Status::bad_request)
    }

    /// A length of time in seconds; none where it is zero, and no time at all where it is negative. However long,
    /// the end of it can be reckoned.
    ///
    /// # Errors
    /// As of [`Query::integer`].
    #[expect(clippy::result_large_err, reason = "made once for each refused request")]
    pub fn seconds(&self, name: &str) -> Result<Option<Duration>, Status> {
        /// A year: no connection lasts as long.
        const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);
        let seconds = self.integer(name)?.filter(|it| *it != 0);
        Ok(seconds.map(|it| Duration::from_secs(u64::try_from(it).unwrap_or_default()).min(LONGEST)))
    }
}

#[cfg(test)]
mod tests {
    use super::Query;

    #[test]
    fn booleans_are_read_as_upstream_reads_them() {
        for (query, expected) in [
            ("", None),
            ("watches=true", None),
            ("watch", Some(true)),
            ("watch=", Some(true)),
            ("watch=1", Some(true)),
            ("watch=true", Some(true)),
            ("watch=no", Some(true)),
            ("watch=%20false", Some(true)),
            ("watch=0", Some(false)),
            ("watch=00", Some(true)),
            ("watch=false", Some(false)),
            ("watch=False", Some(false)),
            ("watch=fAlSe", Some(false)),
            ("w%61tch=f%61lse", Some(false)),
            // The first one counts.
            ("watch=false&watch=true", Some(false)),
            ("watch=&watch=false", Some(true)),
        ] {
            let read = Query::parse(Some(query));
            assert_eq!(read.flag("watch"), expected, "{query}");
            assert_eq!(read.is_set("watch"), expected == Some(true), "{query}");
        }
    }
}
