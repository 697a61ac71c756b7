//! The authorities in a kubeconfig that somebody else has written, such as `cluster-info`: replaced, and all else left as it is.

use base64::{Engine, engine::general_purpose::STANDARD};

const FIELD: &str = "certificate-authority-data:";

/// A kubeconfig with these authorities (PEM) in the place of those that it names.
pub fn with_authorities(kubeconfig: &str, pem: &str) -> String {
    let mut text = String::new();
    // In YAML what is indented further than the field goes on with its value: long ones are written on several lines.
    let mut of_field = None;
    for line in kubeconfig.lines() {
        let column = line.find(|it: char| !it.is_whitespace());
        if of_field.is_some_and(|field| column.is_none_or(|it| it > field)) {
            continue;
        }
        of_field = line.find(FIELD);
        match of_field {
            Some(at) => text.push_str(&format!("{}{FIELD} {}", &line[..at], STANDARD.encode(pem))),
            None => text.push_str(line),
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_are_told_the_authorities_of_now() {
        let before = "clusters:\n- name: ''\n  cluster:\n    server: https://a:6443\n    certificate-authority-data: b2xk\nusers: []\n";
        let after = before.replace("b2xk", "bmV3");
        assert_eq!(with_authorities(before, "new"), after);
        assert_eq!(with_authorities(&after, "new"), after);
        for folded in [">-\n      b2xk\n      b2xk", "b2xk\n      b2xk", ">-\n      b2xk\n\n      b2xk"] {
            assert_eq!(with_authorities(&before.replace("b2xk", folded), "new"), after, "{folded}");
        }
        let first = before
            .replace("    server: https://a:6443\n    certificate", "    certificate")
            .replace("users", "    server: x\nusers");
        assert_eq!(with_authorities(&first, "new"), first.replace("b2xk", "bmV3"));
    }
}
