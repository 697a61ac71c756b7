//! From Go's syntax of regular expressions (RE2) to this machine's.

/// What Go knows by a name within a class (`posixGroup`).
const CLASS_NAMES: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "word",
    "xdigit",
];

/// From Go's syntax to this machine's. They differ in what classes of characters mean (ASCII there), in octal escapes and
/// quoted parts, and in signs that mean themselves there and something else here.
pub(super) fn translated(pattern: &str) -> Result<String, String> {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut rest = pattern;
    let mut in_class = false;
    let mut class = "";
    while let Some(char) = rest.chars().next() {
        let length = match char {
            '\\' => escaped(&mut out, rest, in_class)?,
            '[' if in_class && !rest.starts_with("[:") => quoted(&mut out, "\\["),
            '[' if in_class => named_class(&mut out, rest)?,
            '[' => {
                (in_class, class) = (true, rest);
                class_start(&mut out, rest)
            }
            ']' if in_class => {
                in_class = false;
                quoted(&mut out, "]")
            }
            '&' | '~' if in_class => {
                out.push('\\');
                out.push(char);
                1
            }
            '-' if in_class && rest.starts_with("--") => quoted(&mut out, "\\-"),
            '{' if !in_class && !is_repetition(rest) => quoted(&mut out, "\\{"),
            '}' if !in_class && !closes_repetition(&out) => quoted(&mut out, "\\}"),
            other => {
                out.push(other);
                other.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    if in_class {
        return Err(format!("error parsing regexp: missing closing ]: `{class}`"));
    }
    Ok(out)
}

/// Writes something for one byte.
fn quoted(out: &mut String, text: &str) -> usize {
    out.push_str(text);
    1
}

fn class_start(out: &mut String, rest: &str) -> usize {
    let start = if rest.starts_with("[^") { "[^" } else { "[" };
    out.push_str(start);
    // A bracket that comes first means itself.
    if rest[start.len()..].starts_with(']') {
        out.push_str("\\]");
        return start.len() + 1;
    }
    start.len()
}

/// `[:alpha:]` within a class, or a bracket (`parseNamedClass` of Go's regexp/syntax).
fn named_class(out: &mut String, rest: &str) -> Result<usize, String> {
    let Some(end) = rest[2..].find(":]") else { return Ok(quoted(out, "\\[")) };
    let (name, class) = (&rest[2..2 + end], &rest[..end + 4]);
    if !CLASS_NAMES.contains(&name.strip_prefix('^').unwrap_or(name)) {
        return Err(format!("error parsing regexp: invalid character class range: `{class}`"));
    }
    out.push_str(class);
    Ok(class.len())
}

fn is_repetition(rest: &str) -> bool {
    let Some(end) = rest.find('}') else { return false };
    let (low, high) = rest[1..end].split_once(',').unwrap_or((&rest[1..end], "0"));
    let is_number = |it: &str| it.bytes().all(|it| it.is_ascii_digit());
    !low.is_empty() && is_number(low) && is_number(high)
}

/// Was the brace that is being closed kept as a repetition?
fn closes_repetition(out: &str) -> bool {
    out.rfind('{').is_some_and(|at| !out[..at].ends_with('\\') && !out[at..].contains('}'))
}

/// An escape, from its backslash on; gives how long it is.
fn escaped(out: &mut String, rest: &str, in_class: bool) -> Result<usize, String> {
    let Some(char) = rest[1..].chars().next() else {
        return Err("error parsing regexp: trailing backslash at end of expression: ``".to_owned());
    };
    let written = match (char, in_class) {
        ('d', true) => "0-9",
        ('d', false) => "[0-9]",
        ('D', _) => "[^0-9]",
        ('w', true) => "0-9A-Za-z_",
        ('w', false) => "[0-9A-Za-z_]",
        ('W', _) => "[^0-9A-Za-z_]",
        ('s', true) => "\\t\\n\\f\\r ",
        ('s', false) => "[\\t\\n\\f\\r ]",
        ('S', _) => "[^\\t\\n\\f\\r ]",
        ('b', false) => "(?-u:\\b)",
        // What is not ASCII is no part of a word, so the place between two bytes of a character is never looked at.
        ('B', false) => "(?u:\\B)",
        ('C' | 'Z' | 'G' | 'X' | 'R' | 'K' | 'k', _) | ('1'..='9', _) => {
            return Err(format!("error parsing regexp: invalid escape sequence: `\\{char}`"));
        }
        ('0', _) => {
            let digits = rest[1..].bytes().take(3).take_while(|it| matches!(it, b'0'..=b'7')).count();
            let code = u32::from_str_radix(&rest[1..=digits], 8).unwrap_or(0);
            out.push_str(&format!("\\x{{{code:X}}}"));
            return Ok(1 + digits);
        }
        ('Q', false) => {
            let inside = &rest[2..];
            let end = inside.find("\\E");
            out.push_str(&regex::escape(&inside[..end.unwrap_or(inside.len())]));
            return Ok(end.map_or(rest.len(), |it| it + 4));
        }
        ('E', false) => "",
        // Names of classes hold braces that are no repetition.
        ('p' | 'P' | 'x', _) if rest[2..].starts_with('{') => {
            let end = rest.find('}').map_or(rest.len(), |it| it + 1);
            out.push_str(&rest[..end]);
            return Ok(end);
        }
        (other, _) => {
            out.push('\\');
            out.push(other);
            return Ok(1 + other.len_utf8());
        }
    };
    out.push_str(written);
    Ok(1 + char.len_utf8())
}
