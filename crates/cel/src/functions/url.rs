//! URLs, absolute or absolute paths, as Go's `net/url` takes them apart.

use super::{Evaluated, Row};
use crate::{
    error::Error,
    opaque::{Url, url::checked},
    value::{Key, Opaque, Text, Value},
};

pub(super) const ROWS: &[Row] = &[
    ("string_to_url", "url(string) -> URL", parse),
    ("url_get_scheme", ".getScheme(URL) -> string", |it| with(it, |it| it.scheme.clone().into())),
    ("url_get_host", ".getHost(URL) -> string", |it| with(it, |it| it.host.clone().into())),
    ("url_get_hostname", ".getHostname(URL) -> string", |it| with(it, |it| it.hostname().to_owned().into())),
    ("url_get_port", ".getPort(URL) -> string", |it| with(it, |it| it.port().to_owned().into())),
    ("url_get_escaped_path", ".getEscapedPath(URL) -> string", |it| with(it, |it| it.path.clone().into())),
    ("url_get_query", ".getQuery(URL) -> map(string, list(string))", |it| with(it, query)),
    ("is_url_string", "isURL(string) -> bool", |it| match &it[0] {
        Value::String(text) => Ok(Value::Bool(checked(text).is_ok())),
        _ => Err(Error::no_such_overload()),
    }),
];

fn with<'a>(args: &[Value<'a>], make: fn(&Url) -> Value<'a>) -> Evaluated<'a> {
    if let Value::Opaque(it) = &args[0]
        && let Opaque::Url(it) = &**it
    {
        return Ok(make(it));
    }
    Err(Error::no_such_overload())
}

fn parse<'a>(args: &[Value<'a>]) -> Evaluated<'a> {
    let Value::String(text) = &args[0] else { return Err(Error::no_such_overload()) };
    let url =
        checked(text).map_err(|it| Error::other(format!("URL parse error during conversion from string: {it}")))?;
    Ok(Opaque::Url(url).into())
}

fn query<'a>(url: &Url) -> Value<'a> {
    let value = |it: Vec<String>| it.into_iter().map(Value::from).collect::<Vec<_>>().into();
    url.query().into_iter().map(|(key, values)| (Key::String(Text::Shared(key.into())), value(values))).collect()
}
