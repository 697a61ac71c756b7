//! The path that is asked for behind a proxy.

/// The path without steps back: none leads out of what was named.
pub fn cleaned(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(kept.pop()),
            _ => kept.push(segment),
        }
    }
    let slash = if path.ends_with('/') && !kept.is_empty() { "/" } else { "" };
    format!("/{}{slash}", kept.join("/"))
}
