//! Reads Prometheus' text format: a sample a line.

/// One line: `name{label="value"} number milliseconds`.
pub(crate) struct Sample<'t> {
    pub(crate) name: &'t str,
    labels: &'t str,
    pub(crate) value: f64,
    pub(crate) unix_millis: Option<i64>,
}

/// All samples; what cannot be read is left out, as what is no number.
pub(crate) fn samples(text: &str) -> impl Iterator<Item = Sample<'_>> {
    text.lines().map(str::trim).filter(|it| !it.is_empty() && !it.starts_with('#')).filter_map(sample)
}

fn sample(line: &str) -> Option<Sample<'_>> {
    let (name, labels, rest) = match line.split_once('{') {
        Some((name, rest)) => {
            let end = end_of_labels(rest)?;
            (name, &rest[..end], &rest[end + 1..])
        }
        None => {
            let (name, rest) = line.split_once(' ')?;
            (name, "", rest)
        }
    };
    let mut numbers = rest.split_whitespace();
    let value: f64 = numbers.next()?.parse().ok()?;
    let unix_millis = numbers.next().and_then(|it| it.parse().ok());
    value.is_finite().then_some(Sample { name, labels, value, unix_millis })
}

/// A brace within quotes ends nothing.
fn end_of_labels(text: &str) -> Option<usize> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    text.bytes().position(|it| {
        match it {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            b'}' => return !is_quoted,
            _ => {}
        }
        false
    })
}

/// An escaped quote ends nothing.
fn end_of_value(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.bytes().position(|it| {
        let is_end = it == b'"' && !is_escaped;
        is_escaped = it == b'\\' && !is_escaped;
        is_end
    })
}

impl<'t> Sample<'t> {
    /// A label's value. Names of Kubernetes need no escapes, so none is undone.
    pub(crate) fn label(&self, name: &str) -> &'t str {
        let mut rest = self.labels;
        while let Some((label, after)) = rest.split_once("=\"") {
            let Some(end) = end_of_value(after) else { break };
            if label.trim_matches([',', ' ']) == name {
                return &after[..end];
            }
            rest = &after[end + 1..];
        }
        ""
    }
}
