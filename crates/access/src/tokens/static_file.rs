//! Tokens from a file that is read once, at the start: `token,user,uid,"group1,group2"`, a line each.

use std::{collections::HashMap, path::Path};

use aws_lc_rs::digest::{SHA256, digest};

use crate::identity::Identity;

/// Kept by their hashes, so that how long a look-up takes says nothing of the tokens.
#[derive(Default)]
pub struct StaticTokens(HashMap<Vec<u8>, Identity>);

#[derive(Debug, thiserror::Error)]
pub enum TokenFileError {
    #[error("cannot read the token file")]
    Read(#[from] std::io::Error),
    #[error("line {0} of the token file must have at least 3 columns (token, user name, user uid), found {1}")]
    Columns(usize, usize),
    #[error("line {0} of the token file has an empty token or user name")]
    Empty(usize),
    #[error("line {0} of the token file has a quote without its end")]
    Quote(usize),
}

impl StaticTokens {
    /// # Errors
    /// The file cannot be read, or a line of it means nothing.
    pub fn load(path: &Path) -> Result<Self, TokenFileError> {
        Self::parse(&corten_files::read_to_string(path)?)
    }

    /// # Errors
    /// A line means nothing.
    pub fn parse(text: &str) -> Result<Self, TokenFileError> {
        let mut tokens = HashMap::new();
        for (at, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let columns = columns(line).ok_or(TokenFileError::Quote(at + 1))?;
            let [token, user, uid, rest @ ..] = &*columns else {
                return Err(TokenFileError::Columns(at + 1, columns.len()));
            };
            // A uid may be empty (`tokenfile.NewCSV`).
            if token.is_empty() || user.is_empty() {
                return Err(TokenFileError::Empty(at + 1));
            }
            let groups = rest.first().map(String::as_str).unwrap_or_default();
            let groups = groups.split(',').map(str::trim).filter(|it| !it.is_empty()).map(str::to_owned).collect();
            let who = Identity { user: user.clone(), uid: uid.clone(), groups, ..Identity::default() };
            // As in `tokenfile.NewCSV`: of two lines with the same token the later one counts.
            tokens.insert(hash(token), who);
        }
        Ok(Self(tokens))
    }

    pub fn get(&self, token: &str) -> Option<&Identity> {
        if self.0.is_empty() { None } else { self.0.get(&hash(token)) }
    }
}

fn hash(token: &str) -> Vec<u8> {
    digest(&SHA256, token.as_bytes()).as_ref().to_vec()
}

/// The columns of one line: trimmed, or quoted with `""` for a quote. `None` where a quote does not end.
fn columns(line: &str) -> Option<Vec<String>> {
    let (mut columns, mut rest) = (Vec::new(), line.trim_end_matches('\r'));
    loop {
        rest = rest.trim_start();
        let (column, after) = match rest.strip_prefix('"') {
            None => {
                let end = rest.find(',').unwrap_or(rest.len());
                (rest[..end].trim().to_owned(), &rest[end..])
            }
            Some(quoted) => {
                let (mut column, mut at) = (String::new(), quoted);
                loop {
                    let end = at.find('"')?;
                    column += &at[..end];
                    at = &at[end + 1..];
                    match at.strip_prefix('"') {
                        Some(more) => (column.push('"'), at = more).1,
                        None => break,
                    }
                }
                (column, at.trim_start())
            }
        };
        columns.push(column);
        match after.strip_prefix(',') {
            Some(more) => rest = more,
            None => return Some(columns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_name_users() {
        let text = "# a comment\nt1,jane,u1,\"dev, ops\"\n\nt2 , john , u2\n\"t,3\",\"j\"\"q\",u3,one,more\n";
        let tokens = StaticTokens::parse(text).expect("a good file");
        for (token, expected) in [
            ("t1", Some(("jane", "u1", vec!["dev", "ops"]))),
            ("t2", Some(("john", "u2", vec![]))),
            ("t,3", Some(("j\"q", "u3", vec!["one"]))),
            ("t4", None),
            ("", None),
        ] {
            let found = tokens.get(token).map(|it| (&*it.user, &*it.uid, it.groups.iter().map(|it| &**it).collect()));
            assert_eq!(found, expected, "{token}");
        }
    }

    #[test]
    fn bad_lines_are_named() {
        for (text, expected) in [
            ("a,b", "line 1 of the token file must have at least 3 columns (token, user name, user uid), found 2"),
            ("a,b,\n,b,c", "line 2 of the token file has an empty token or user name"),
            ("a,b,c,\"x", "line 1 of the token file has a quote without its end"),
        ] {
            assert_eq!(StaticTokens::parse(text).err().map(|it| it.to_string()).as_deref(), Some(expected));
        }
    }
}
