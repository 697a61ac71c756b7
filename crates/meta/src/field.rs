//! The small grammars of names and labels (RFC 1123, RFC 1035). Each returns the sentences Kubernetes uses; none means valid.

const DNS1123_LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const DNS1123_SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const DNS1035_LABEL: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const QUALIFIED_NAME: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

fn too_long(max: usize) -> String {
    format!("must be no more than {max} bytes")
}

/// For names of DNS, which are counted in characters; all else is counted in bytes (`validation.MaxLenError`).
fn too_many_characters(max: usize) -> String {
    format!("must be no more than {max} characters")
}

fn is_lower_label(text: &str) -> bool {
    let inner = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-';
    !text.is_empty() && !text.starts_with('-') && !text.ends_with('-') && text.bytes().all(inner)
}

fn is_name_part(text: &str) -> bool {
    let edge = |it: Option<&u8>| it.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    edge(bytes.first())
        && edge(bytes.last())
        && bytes.iter().all(|it| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_' | b'.'))
}

/// A DNS label of at most 63 bytes: container names, namespaces.
pub fn dns1123_label(text: &str) -> Vec<String> {
    let mut reasons = Vec::new();
    if text.len() > 63 {
        reasons.push(too_many_characters(63));
    }
    // `IsDNS1123Label`: of a name that would do as a subdomain, only what is wrong with it.
    if text.contains('.') && text.split('.').all(is_lower_label) && text.len() <= 253 {
        reasons.push("must not contain dots".into());
    } else if !is_lower_label(text) {
        reasons.push(DNS1123_LABEL.into());
    }
    reasons
}

/// A DNS name of at most 253 bytes: names of most objects.
pub fn dns1123_subdomain(text: &str) -> Vec<String> {
    let mut reasons = Vec::new();
    if text.len() > 253 {
        reasons.push(too_many_characters(253));
    }
    if !text.split('.').all(is_lower_label) {
        reasons.push(DNS1123_SUBDOMAIN.into());
    }
    reasons
}

/// The same for kinds whose fields are validated by their declarations, which count bytes (`k8s-long-name`).
pub fn long_name(text: &str) -> Vec<String> {
    let mut reasons = dns1123_subdomain(text);
    if text.len() > 253 {
        reasons[0] = too_long(253);
    }
    reasons
}

/// A DNS label that starts with a letter: names of versions and kinds.
pub fn dns1035_label(text: &str) -> Vec<String> {
    let mut reasons = Vec::new();
    if text.len() > 63 {
        reasons.push(too_long(63));
    }
    if !is_lower_label(text) || text.starts_with(|it: char| it.is_ascii_digit()) {
        reasons.push(DNS1035_LABEL.into());
    }
    reasons
}

/// A name that is safe as one segment of a path: RBAC names may hold anything else.
pub fn path_segment(text: &str) -> Vec<String> {
    if matches!(text, "." | "..") {
        return vec![format!("may not be '{text}'")];
    }
    ['/', '%'].iter().filter(|it| text.contains(**it)).map(|it| format!("may not contain '{it}'")).collect()
}

/// `[prefix/]name`: keys of labels and annotations, names of taints and extended resources.
pub fn qualified_name(text: &str) -> Vec<String> {
    let (prefix, name) = match text.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, text),
    };
    let mut reasons = Vec::new();
    match prefix {
        Some("") => reasons.push("prefix part must be non-empty".into()),
        Some(prefix) => reasons.extend(dns1123_subdomain(prefix).into_iter().map(|it| format!("prefix part {it}"))),
        None => {}
    }
    if name.is_empty() {
        reasons.push("name part must be non-empty".into());
    } else if name.len() > 63 {
        reasons.push(format!("name part {}", too_long(63)));
    }
    if !is_name_part(name) {
        reasons.push(QUALIFIED_NAME.into());
    }
    reasons
}

/// The value of a label.
pub fn label_value(text: &str) -> Vec<String> {
    let mut reasons = Vec::new();
    if text.len() > 63 {
        reasons.push(too_long(63));
    }
    if !text.is_empty() && !is_name_part(text) {
        reasons.push(LABEL_VALUE.into());
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (text, label, subdomain, service, qualified) in [
            ("web", true, true, true, true),
            ("1web", true, true, false, true),
            ("web.example", false, true, false, true),
            ("Web", false, false, false, true),
            ("-web", false, false, false, false),
            ("", false, false, false, false),
            ("example.com/web", false, false, false, true),
            ("/web", false, false, false, false),
            ("a/b/c", false, false, false, false),
        ] {
            assert_eq!(dns1123_label(text).is_empty(), label, "label {text}");
            assert_eq!(dns1123_subdomain(text).is_empty(), subdomain, "subdomain {text}");
            assert_eq!(dns1035_label(text).is_empty(), service, "service {text}");
            assert_eq!(qualified_name(text).is_empty(), qualified, "qualified {text}");
        }
        assert_eq!(dns1123_label("web.example"), ["must not contain dots"]);
        assert_eq!(dns1123_label("Web.example"), [DNS1123_LABEL]);
        assert!(path_segment("system:node").is_empty());
        assert!(!path_segment("..").is_empty());
        assert!(!path_segment("a/b").is_empty());
    }
}
