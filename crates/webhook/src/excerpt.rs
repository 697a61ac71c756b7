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

/// Of what a refusal shows of a body so much is kept: a page or a review of a server that broke fills a line and says little.
const BODY: usize = 80;
/// What stands before a body, and after it.
const AROUND_BODY: [&str; 2] = ["an error on the server (\"", "\") has prevented the request from succeeding"];

/// What was said of an answer with this code, for a line that is kept: Kubernetes's words do not say the code.
pub fn told(text: &str, code: Option<u16>) -> String {
    let Some(code) = code else { return excerpt(text).into_owned() };
    let text = shortened(text).unwrap_or_else(|| text.to_owned());
    excerpt(&format!("{text} (HTTP {code})")).into_owned()
}

fn shortened(text: &str) -> Option<String> {
    let [before, after] = AROUND_BODY;
    let (begin, rest) = text.split_once(before)?;
    let (body, end) = rest.rsplit_once(after)?;
    if body.chars().count() <= BODY {
        return None;
    }
    let kept: String = body.chars().take(BODY).collect();
    // No half of an escape.
    Some(format!("{begin}{before}{}…{after}{end}", kept.trim_end_matches('\\')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_of_an_answer_is_told_and_a_long_body_is_cut_at_its_end() {
        let said = |body: &str| format!("an error on the server ({body:?}) has prevented the request from succeeding");
        assert_eq!(told(&said("no"), Some(500)), format!("{} (HTTP 500)", said("no")));
        assert_eq!(told("EOF", None), "EOF");
        let review =
            "{\"kind\":\"ConversionReview\",\"response\":{\"convertedObjects\":[".to_owned() + &"{},".repeat(200);
        let expected = "conversion: an error on the server (\"{\\\"kind\\\":\\\"ConversionReview\\\",\\\"response\\\":{\\\"convertedObjects\\\":[{},{},{},{},{…\") has prevented the request from succeeding (HTTP 502)";
        assert_eq!(told(&format!("conversion: {}", said(&review)), Some(502)), expected);
    }

    #[test]
    fn the_cause_at_the_end_is_kept() {
        let whole = "é".repeat(300);
        assert_eq!(excerpt(&whole), whole);
        let long = format!("begin {} end", "é".repeat(5000));
        let short = excerpt(&long);
        assert!(short.starts_with("begin é") && short.ends_with("é end") && short.chars().count() == 300);
    }
}
