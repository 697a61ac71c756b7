//! How a property whose name is no identifier is named in an expression: `a-b` as `a__dash__b`, `in` as `__in__`.

/// Words that an expression cannot have as a field's name.
const RESERVED: [&str; 20] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "namespace",
    "null",
    "package",
    "return",
    "true",
    "var",
    "void",
];
const WHILE: &str = "while";
const SIGNS: [(&str, &str); 4] = [("__underscores__", "__"), ("__dot__", "."), ("__dash__", "-"), ("__slash__", "/")];

pub(crate) fn is_reserved(word: &str) -> bool {
    word == WHILE || RESERVED.contains(&word)
}

/// The name in expressions; `None` for a property that no expression can name.
pub fn escape(property: &str) -> Option<String> {
    let first = property.chars().next()?;
    if first.is_ascii_digit() {
        return None;
    }
    if is_reserved(property) {
        return Some(format!("__{property}__"));
    }
    let mut escaped = String::with_capacity(property.len());
    let mut rest = property;
    while let Some(char) = rest.chars().next() {
        if let Some((word, sign)) = SIGNS.iter().find(|it| rest.starts_with(it.1)) {
            escaped.push_str(word);
            rest = &rest[sign.len()..];
        } else if char == '_' || char.is_ascii_alphanumeric() {
            escaped.push(char);
            rest = &rest[1..];
        } else {
            return None;
        }
    }
    Some(escaped)
}

/// The property that an expression names; `None` for a name that [`escape`] never makes.
pub fn unescape(name: &str) -> Option<String> {
    if let Some(word) = name.strip_prefix("__").and_then(|it| it.strip_suffix("__"))
        && is_reserved(word)
    {
        return Some(word.to_owned());
    }
    let mut property = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(char) = rest.chars().next() {
        if let Some((word, sign)) = SIGNS.iter().find(|it| rest.starts_with(it.0)) {
            property.push_str(sign);
            rest = &rest[word.len()..];
        } else if rest.starts_with("__") {
            return None;
        } else if char == '_' || char.is_ascii_alphanumeric() {
            property.push(char);
            rest = &rest[1..];
        } else {
            return None;
        }
    }
    Some(property)
}
