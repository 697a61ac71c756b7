//! Named formats: `format.dns1123Label().validate(text)` gives what is wrong with a text.

use super::{Evaluated, Row};
use crate::{
    error::Error,
    opaque::format::FORMATS,
    value::{Opaque, Value},
};

pub(super) const ROWS: &[Row] = &[
    ("format-named", "format.named(string) -> optional(Format)", named),
    ("format-validate", ".validate(Format, string) -> optional(list(string))", validate),
    ("format.dns1123Label", "format.dns1123Label() -> Format", |_| Ok(nth(0))),
    ("format.dns1123Subdomain", "format.dns1123Subdomain() -> Format", |_| Ok(nth(1))),
    ("format.dns1035Label", "format.dns1035Label() -> Format", |_| Ok(nth(2))),
    ("format.qualifiedName", "format.qualifiedName() -> Format", |_| Ok(nth(3))),
    ("format.dns1123LabelPrefix", "format.dns1123LabelPrefix() -> Format", |_| Ok(nth(4))),
    ("format.dns1123SubdomainPrefix", "format.dns1123SubdomainPrefix() -> Format", |_| Ok(nth(5))),
    ("format.dns1035LabelPrefix", "format.dns1035LabelPrefix() -> Format", |_| Ok(nth(6))),
    ("format.labelValue", "format.labelValue() -> Format", |_| Ok(nth(7))),
    ("format.uri", "format.uri() -> Format", |_| Ok(nth(8))),
    ("format.uuid", "format.uuid() -> Format", |_| Ok(nth(9))),
    ("format.byte", "format.byte() -> Format", |_| Ok(nth(10))),
    ("format.date", "format.date() -> Format", |_| Ok(nth(11))),
    ("format.datetime", "format.datetime() -> Format", |_| Ok(nth(12))),
];

fn nth<'a>(at: usize) -> Value<'a> {
    Opaque::Format(&FORMATS[at]).into()
}

fn named<'a>(args: &[Value<'a>]) -> Evaluated<'a> {
    let Value::String(name) = &args[0] else { return Err(Error::no_such_overload()) };
    Ok(FORMATS.iter().position(|it| it.function == &**name).map_or(Value::NONE, |it| Value::some(nth(it))))
}

fn validate<'a>(args: &[Value<'a>]) -> Evaluated<'a> {
    let (Value::Opaque(format), Value::String(text)) = (&args[0], &args[1]) else {
        return Err(Error::no_such_overload());
    };
    let Opaque::Format(format) = &**format else { return Err(Error::no_such_overload()) };
    let complaints = (format.check)(text);
    if complaints.is_empty() {
        return Ok(Value::NONE);
    }
    Ok(Value::some(complaints.into_iter().map(Value::from).collect::<Vec<_>>().into()))
}
