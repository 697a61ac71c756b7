//! Texts: cel-go's extension in its second version. Places are counted in characters.

use super::{Evaluated, ITEM_BYTES, MADE_BYTES_MAX, Row};
use crate::{error::Error, fuel, value::Value};

pub(super) const ROWS: &[Row] = &[
    ("string_char_at_int", ".charAt(string, int) -> string", char_at),
    ("string_index_of_string", ".indexOf(string, string) -> int", index_of),
    ("string_index_of_string_int", ".indexOf(string, string, int) -> int", index_of),
    ("string_last_index_of_string", ".lastIndexOf(string, string) -> int", last_index_of),
    ("string_last_index_of_string_int", ".lastIndexOf(string, string, int) -> int", last_index_of),
    ("string_lower_ascii", ".lowerAscii(string) -> string", |it| changed(it, |it| it.to_ascii_lowercase())),
    ("string_upper_ascii", ".upperAscii(string) -> string", |it| changed(it, |it| it.to_ascii_uppercase())),
    ("string_trim", ".trim(string) -> string", |it| changed(it, |it| it.trim().to_owned())),
    ("string_replace_string_string", ".replace(string, string, string) -> string", replace),
    ("string_replace_string_string_int", ".replace(string, string, string, int) -> string", replace),
    ("string_split_string", ".split(string, string) -> list(string)", split),
    ("string_split_string_int", ".split(string, string, int) -> list(string)", split),
    ("string_substring_int", ".substring(string, int) -> string", substring),
    ("string_substring_int_int", ".substring(string, int, int) -> string", substring),
    ("list_join", ".join(list(string)) -> string", join),
    ("list_join_string", ".join(list(string), string) -> string", join),
];

fn changed<'a>(args: &[Value<'a>], change: fn(&str) -> String) -> Evaluated<'a> {
    match &args[0] {
        Value::String(text) => Ok(change(text).into()),
        _ => Err(Error::no_such_overload()),
    }
}

fn out_of_range(at: i64) -> Box<Error> {
    Error::other(format!("index out of range: {at}"))
}

/// Where the character is, or the end.
fn byte_of(text: &str, at: i64) -> Option<usize> {
    let at = usize::try_from(at).ok()?;
    text.char_indices().map(|it| it.0).chain([text.len()]).nth(at)
}

fn char_at<'a>(args: &[Value<'a>]) -> Evaluated<'a> {
    let (Value::String(text), Value::Int(at)) = (&args[0], &args[1]) else { return Err(Error::no_such_overload()) };
    let byte = byte_of(text, *at).ok_or_else(|| out_of_range(*at))?;
    Ok(text[byte..].chars().next().map(String::from).unwrap_or_default().into())
}

fn index_of<'a>(args: &[Value<'a>]) -> Evaluated<'a> {
    let (Value::String(text), Value::String(part)) = (&args[0], &args[1]) else {
        return Err(Error::no_such_overload());
    };
    let from = match args.get(2) {
        None => 0,
        Some(Value::Int(from)) => *from,
        Some(_) => return Err(Error::no_such_overload()),
    };
    if part.is_empty() {
        return Ok(Value::Int(from));
    }
    let start = match byte_of(text, from) {
        Some(it) if it < text.len() => it,
        _ if args.len() == 2 => return Ok(Value::Int(-1)),
        _ => return Err(out_of_range(from)),
    };
    Ok(text[start..].find(&**part).map_or(Value::Int(-1), |it| text[..start + it].chars().count().into()))
}

fn last_index_of<'a>(args: &[Value<'a>]) -> Evaluated<'a> {
    let (Value::String(text), Value::String(part)) = (&args[0], &args[1]) else {
        return Err(Error::no_such_overload());
    };
    let Some(last) = args.get(2) else {
        return Ok(match text.rfind(&**part) {
            _ if part.is_empty() => text.chars().count().into(),
            Some(it) => text[..it].chars().count().into(),
            None => Value::Int(-1),
        });
    };
    let Value::Int(last) = last else { return Err(Error::no_such_overload()) };
    if part.is_empty() {
        return Ok(Value::Int(*last));
    }
    let start = byte_of(text, *last).filter(|it| *it < text.len()).ok_or_else(|| out_of_range(*last))?;
    let mut end = (start + part.len()).min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    Ok(text[..end].rfind(&**part).map_or(Value::Int(-1), |it| text[..it].chars().count().into()))
}

fn replace<'a>(args: &[Value<'a>]) -> Evaluated<'a> {
    let (Value::String(text), Value::String(old), Value::String(new)) = (&args[0], &args[1], &args[2]) else {
        return Err(Error::no_such_overload());
    };
    let most = match args.get(3) {
        None => usize::MAX,
        Some(Value::Int(most)) => usize::try_from(*most).unwrap_or(usize::MAX),
        Some(_) => return Err(Error::no_such_overload()),
    };
    let n = if old.is_empty() { text.chars().count() + 1 } else { text.matches(&**old).count() };
    if n.min(most).saturating_mul(new.len()).saturating_add(text.len()) > MADE_BYTES_MAX {
        return Err(Error::other("string is too long"));
    }
    Ok(text.replacen(&**old, new, most).into())
}

fn split<'a>(args: &[Value<'a>]) -> Evaluated<'a> {
    let (Value::String(text), Value::String(by)) = (&args[0], &args[1]) else { return Err(Error::no_such_overload()) };
    let most = match args.get(2) {
        None => usize::MAX,
        Some(Value::Int(0)) => return Ok(Vec::new().into()),
        Some(Value::Int(most)) => usize::try_from(*most).unwrap_or(usize::MAX),
        Some(_) => return Err(Error::no_such_overload()),
    };
    let mut parts: Vec<Value<'a>> = Vec::new();
    let mut add = |part: &str| {
        parts.push(part.to_owned().into());
        fuel::spend_made(part.len() + ITEM_BYTES)
    };
    let is_whole = if by.is_empty() {
        // Each character by itself, and what is left over in the last.
        let starts = text.char_indices().map(|it| it.0).take(most);
        let ends = starts.clone().skip(1).chain([text.len()]);
        starts.zip(ends).all(|(start, end)| add(&text[start..end]))
    } else {
        text.splitn(most, &**by).all(add)
    };
    if is_whole { Ok(parts.into()) } else { Err(Error::interrupted()) }
}

fn substring<'a>(args: &[Value<'a>]) -> Evaluated<'a> {
    let (Value::String(text), Value::Int(start)) = (&args[0], &args[1]) else { return Err(Error::no_such_overload()) };
    let end = match args.get(2) {
        None => text.len(),
        Some(Value::Int(end)) if start > end => {
            return Err(Error::other(format!("invalid substring range. start: {start}, end: {end}")));
        }
        Some(Value::Int(end)) => {
            byte_of(text, *start).ok_or_else(|| out_of_range(*start))?;
            byte_of(text, *end).ok_or_else(|| out_of_range(*end))?
        }
        Some(_) => return Err(Error::no_such_overload()),
    };
    let start = byte_of(text, *start).ok_or_else(|| out_of_range(*start))?;
    Ok(text[start..end].to_owned().into())
}

fn join<'a>(args: &[Value<'a>]) -> Evaluated<'a> {
    let Value::List(list) = &args[0] else { return Err(Error::no_such_overload()) };
    let between: &str = match args.get(1) {
        None => "",
        Some(Value::String(it)) => it,
        Some(_) => return Err(Error::no_such_overload()),
    };
    let mut joined = String::new();
    for (nth, item) in list.iter().enumerate() {
        let Value::String(item) = item else { return Err(Error::no_such_overload()) };
        if nth > 0 {
            joined.push_str(between);
        }
        joined.push_str(&item);
        if joined.len() > MADE_BYTES_MAX {
            return Err(Error::other("string is too long"));
        }
    }
    Ok(joined.into())
}
