//! Commands that can be pasted: quoted for a POSIX shell, with the namespace where there is one.

use corten_console::shell::quoted;

/// `kubectl WORDS -n NAMESPACE`.
pub(super) fn kubectl(namespace: &str, words: &[&str]) -> String {
    let mut command = String::from("kubectl");
    for word in words {
        command.push(' ');
        command.push_str(&quoted(word));
    }
    if !namespace.is_empty() {
        command.push_str(" -n ");
        command.push_str(&quoted(namespace));
    }
    command
}

/// A merge patch of one object.
pub(super) fn merge(namespace: &str, subject: &str, patch: &serde_json::Value) -> String {
    kubectl(namespace, &["patch", subject, "--type=merge", "-p", &patch.to_string()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_the_shell() {
        let patch = serde_json::json!({"spec": {"suspend": false}});
        assert_eq!(
            merge("shop", "job/paused", &patch),
            r#"kubectl patch job/paused --type=merge -p '{"spec":{"suspend":false}}' -n shop"#
        );
        assert_eq!(kubectl("", &["get", "it's"]), r"kubectl get 'it'\''s'");
    }
}
