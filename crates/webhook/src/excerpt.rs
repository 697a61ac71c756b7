//! What an error says, short enough for a line that is kept.

use std::borrow::Cow;

/// In characters.
const MAX: usize = 300;
const BEGIN: usize = 100;

/// The text, and of a long one its beginning and its end: errors name their cause last.
pub fn excerpt(text: &str) -> Cow<'_, str> {
    let n = text.chars().count();
    if n <= MAX {
        return Cow::Borrowed(text);
    }
    let begin: String = text.chars().take(BEGIN).collect();
    let end: String = text.chars().skip(n - (MAX - BEGIN - 1)).collect();
    Cow::Owned(format!("{begin}…{end}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_at_the_end_is_kept() {
        let whole = "é".repeat(300);
        assert_eq!(excerpt(&whole), whole);
        let long = format!("begin {} end", "é".repeat(5000));
        let short = excerpt(&long);
        assert!(short.starts_with("begin é") && short.ends_with("é end") && short.chars().count() == 300);
    }
}
