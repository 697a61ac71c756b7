//! What the author of a request is told beside its answer, as `Warning` headers.
//!
//! As in `WithWarningRecorder`: each once, and whole while all of them together are short; else the start of each, until
//! there is no more room.

use std::collections::BTreeSet;

use http::HeaderValue;

/// In characters, of all together.
const ALL_MAX: usize = 4096;
/// Of each, where all together are longer.
const EACH_MAX: usize = 256;

#[derive(Clone, Debug, Default)]
pub struct Warnings {
    texts: Vec<String>,
    known: BTreeSet<String>,
    /// How long all of them are, and how long their starts.
    n_whole: usize,
    n_starts: usize,
}

impl Warnings {
    pub fn add(&mut self, text: impl AsRef<str>) {
        // What has no room is not kept.
        if self.n_whole > ALL_MAX && self.n_starts >= ALL_MAX {
            return;
        }
        // Nothing longer is ever sent whole.
        let text = start(text.as_ref(), ALL_MAX + 1);
        if text.is_empty() || self.known.contains(text) {
            return;
        }
        self.known.insert(text.to_owned());
        let n = text.chars().count();
        self.n_whole = self.n_whole.saturating_add(n);
        self.n_starts = self.n_starts.saturating_add(n.min(EACH_MAX));
        self.texts.push(text.to_owned());
    }

    pub fn extend(&mut self, texts: impl IntoIterator<Item = impl AsRef<str>>) {
        texts.into_iter().for_each(|it| self.add(it));
    }

    pub fn merge(&mut self, other: Self) {
        self.extend(other.texts);
    }

    pub fn headers(&self) -> impl Iterator<Item = HeaderValue> {
        let most = if self.n_whole > ALL_MAX { EACH_MAX } else { ALL_MAX };
        self.texts.iter().filter_map(move |it| {
            let text = start(it, most).replace('\\', "\\\\").replace('"', "\\\"");
            // A warning with control characters is not sent (`net.NewWarningHeader`).
            HeaderValue::from_bytes(format!("299 - \"{text}\"").as_bytes()).ok()
        })
    }
}

/// The first so many characters.
fn start(text: &str, n: usize) -> &str {
    text.char_indices().nth(n).map_or(text, |(at, _)| &text[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(texts: impl IntoIterator<Item = String>) -> Vec<String> {
        let mut warnings = Warnings::default();
        warnings.extend(texts);
        warnings.headers().map(|it| String::from_utf8_lossy(it.as_bytes()).into_owned()).collect()
    }

    #[test]
    fn each_is_sent_once_and_whole_while_there_is_room() {
        assert_eq!(
            sent(["a \"b\" \\".into(), "x".into(), String::new(), "x".into()]),
            [r#"299 - "a \"b\" \\""#, r#"299 - "x""#]
        );
        let long = "ä".repeat(4000);
        assert_eq!(sent([long.clone(), "x".into()]), [format!("299 - {long:?}"), r#"299 - "x""#.into()]);
        assert_eq!(sent(["a\nb".into(), "c".into()]), [r#"299 - "c""#]);
    }

    #[test]
    fn of_many_or_long_ones_the_starts_are_sent() {
        let sent_of = |n: usize, length: usize| sent((0..n).map(|it| format!("{it:08}{}", "x".repeat(length - 8))));
        for (n, length, count, of_each) in [
            (1, 1 << 20, 1, 256),
            (2, 4000, 2, 256),
            (100_000, 1000, 16, 256),
            (1_000_000, 8, 513, 8),
            (17, 256, 17, 256),
        ] {
            let sent = sent_of(n, length);
            assert_eq!(sent.len(), count, "{n} of {length}");
            assert!(sent.iter().all(|it| it.len() == of_each + r#"299 - """#.len()), "{n} of {length}");
        }
    }
}
