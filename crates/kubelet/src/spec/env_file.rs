//! Variables out of files that another container has written into an emptyDir (`fileKeyRef`).
//!
//! ```text
//! # a comment
//! NAME='taken literally, new lines too'
//! ```
//! As KEP-3721 has it, only that much of a shell's grammar is read, so that a shell would read the same.

use std::collections::BTreeMap;

use corten_api::core::v1::Container;

use crate::EnvFile;

/// What was read of the files; `None`: there is no such file.
pub(crate) type EnvFiles = BTreeMap<EnvFile, Option<Vec<u8>>>;

/// Every file that the container's environment names.
pub(crate) fn named_by(container: &Container) -> Vec<EnvFile> {
    let sources = container.env.iter().flatten().filter_map(|it| it.value_from.as_ref()?.file_key_ref.as_ref());
    let mut files: Vec<_> = sources.map(|it| (it.volume_name.clone(), it.path.clone())).collect();
    files.sort();
    files.dedup();
    files
}

/// What the file defines; the last value of a key counts.
pub(crate) fn variables(text: &str) -> Result<BTreeMap<String, String>, String> {
    let mut rest = text;
    let mut found = BTreeMap::new();
    let mut line = 0;
    while !rest.is_empty() {
        line += 1;
        let (this, after) = rest.split_once('\n').unwrap_or((rest, ""));
        let declared = this.trim_start();
        if declared.trim_end().is_empty() || declared.starts_with('#') {
            rest = after;
            continue;
        }
        let invalid = |why: &str| format!("invalid environment variable format at line {line}: {why}");
        let (name, _) = declared.split_once('=').ok_or_else(|| invalid("no '='"))?;
        let name = name.trim_end();
        let start = rest.len() - rest.trim_start().len() + declared.find('=').unwrap_or(0) + 1;
        let quoted = rest[start..].trim_start_matches([' ', '\t']);
        let quoted = quoted.strip_prefix('\'').ok_or_else(|| invalid("the value is not in single quotes"))?;
        let (value, behind) = quoted.split_once('\'').ok_or_else(|| invalid("the quote is not closed"))?;
        let (trailing, after) = behind.split_once('\n').unwrap_or((behind, ""));
        if !trailing.trim().is_empty() {
            return Err(invalid("something stands behind the closing quote"));
        }
        found.insert(name.to_owned(), value.to_owned());
        line += value.matches('\n').count();
        rest = after;
    }
    Ok(found)
}

/// The files that a container's environment names. Read afresh for each start.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) enum EnvFilesRead {
    #[default]
    No,
    Reading,
    Done(Result<EnvFiles, String>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_as_a_shell_would() {
        let text = "# comment\n\n  A='x y'\nB = 'it # is'  \nMULTI='line1\nline2'\nA='last'\nEMPTY=''\n";
        for (key, expected) in [
            ("A", Some("last")),
            ("B", Some("it # is")),
            ("MULTI", Some("line1\nline2")),
            ("EMPTY", Some("")),
            ("line2", None),
            ("C", None),
        ] {
            assert_eq!(variables(text).expect("a good file").get(key).map(String::as_str), expected, "{key}");
        }
        for (text, why) in [
            ("A=x\n", "line 1: the value is not in single quotes"),
            ("A='x'\nB=\"y\"\n", "line 2: the value is not in single quotes"),
            ("A='x''y'\n", "line 1: something stands behind the closing quote"),
            ("A='x\n\ny'\nB\n", "line 4: no '='"),
            ("A='x\n", "line 1: the quote is not closed"),
            ("A=", "line 1: the value is not in single quotes"),
        ] {
            let problem = variables(text).expect_err(text);
            assert!(problem.ends_with(why), "{problem} for {text:?}");
        }
    }
}
