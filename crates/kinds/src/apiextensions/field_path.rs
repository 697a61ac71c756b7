//! Paths to fields of a schema: `.spec.size`, `.metadata['a.b']` (`ValidFieldPath` of apiextensions' schema/cel).

use serde_json::Value;

/// A field that a path leads to.
pub(super) struct FieldAtPath<'a> {
    pub(super) names: Vec<String>,
    pub(super) schema: &'a Value,
}

/// # Errors
/// What is wrong with the path, in upstream's words.
pub(super) fn find<'a>(path: &str, schema: &'a Value) -> Result<FieldAtPath<'a>, String> {
    let mut tokens = Tokens(path);
    let mut found = FieldAtPath { names: Vec::new(), schema };
    while let Some(token) = tokens.next() {
        match token {
            "." => found.enter(tokens.next().ok_or(END)?)?,
            "[" => {
                let quoted = tokens.next().ok_or(END)?;
                let inner = quoted.strip_prefix('\'').and_then(|it| it.strip_suffix('\''));
                let inner = inner.ok_or_else(|| format!("expected single quoted string but got {quoted}"))?;
                found.enter(&unescaped(inner)?)?;
                match tokens.next().ok_or(END)? {
                    "]" => {}
                    other => return Err(format!("expected ] but got {other}")),
                }
            }
            other => return Err(format!("expected [ or . but got: {other}")),
        }
    }
    Ok(found)
}

const END: &str = "unexpected end of JSON path";

impl FieldAtPath<'_> {
    fn enter(&mut self, name: &str) -> Result<(), String> {
        let properties = self.schema.get("properties").filter(|it| it.is_object());
        let values = self.schema.get("additionalProperties").filter(|it| it.is_object());
        let inner = properties.map_or(values, |it| it.get(name));
        self.schema = inner.ok_or("does not refer to a valid field")?;
        self.names.push(name.to_owned());
        Ok(())
    }
}

/// Delimiters by themselves, what stands between them as a whole, and so what is quoted.
struct Tokens<'a>(&'a str);

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let end = if self.0.starts_with('\'') {
            let closes = |at: &usize| self.0.as_bytes()[at - 1] != b'\\';
            self.0.match_indices('\'').map(|it| it.0).skip(1).find(closes).map(|it| it + 1)
        } else {
            self.0.find(['.', '[', ']']).map(|it| it.max(1))
        };
        let (token, rest) = self.0.split_at(end.unwrap_or(self.0.len()));
        self.0 = rest;
        (!token.is_empty()).then_some(token)
    }
}

fn unescaped(text: &str) -> Result<String, String> {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(letter) = chars.next() {
        plain.push(match letter {
            '\\' => match chars.next() {
                Some(escaped @ ('\'' | '\\')) => escaped,
                _ => return Err(format!("invalid string literal: {text}")),
            },
            other => other,
        });
    }
    Ok(plain)
}

#[cfg(test)]
mod tests;
