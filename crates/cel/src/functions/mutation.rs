//! What patches need of text.

use super::{Evaluated, Row};
use crate::{error::Error, value::Value};

pub(super) const ROWS: &[Row] = &[("jsonpatch_escape_key", "jsonpatch.escapeKey(string) -> string", escape_key)];

fn escape_key<'a>(args: &[Value<'a>]) -> Evaluated<'a> {
    match &args[0] {
        Value::String(text) => Ok(text.replace('~', "~0").replace('/', "~1").into()),
        _ => Err(Error::no_such_overload()),
    }
}
