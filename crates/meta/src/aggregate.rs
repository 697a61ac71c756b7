//! Several errors as one sentence, as Kubernetes joins them.

use std::collections::BTreeSet;

/// `a` of one, `[a, b]` of several, each sentence once and in the order of the first of each (`utilerrors.NewAggregate`); `None` of
/// none.
pub fn aggregate(errors: impl IntoIterator<Item = String>) -> Option<String> {
    let mut said = BTreeSet::new();
    let mut sentences: Vec<String> = errors.into_iter().filter(|it| said.insert(it.clone())).collect();
    match sentences.len() {
        0 | 1 => sentences.pop(),
        _ => Some(format!("[{}]", sentences.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::aggregate;

    #[test]
    fn each_sentence_is_said_once() {
        let of = |errors: &[&str]| aggregate(errors.iter().map(ToString::to_string));
        assert_eq!(of(&[]), None);
        assert_eq!(of(&["x"]).as_deref(), Some("x"));
        assert_eq!(of(&["x", "x"]).as_deref(), Some("x"));
        assert_eq!(of(&["b", "a", "b"]).as_deref(), Some("[b, a]"));
    }
}
