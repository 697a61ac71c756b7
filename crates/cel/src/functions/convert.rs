//! Conversions between types, and how a value is written as text.

use super::{Evaluated, Row};
use crate::{
    error::Error,
    value::{Value, text_of},
};

pub(super) const ROWS: &[Row] = &[
    ("bool_to_bool", "bool(bool) -> bool", to_bool),
    ("string_to_bool", "bool(string) -> bool", to_bool),
    ("bytes_to_bytes", "bytes(bytes) -> bytes", to_bytes),
    ("string_to_bytes", "bytes(string) -> bytes", to_bytes),
    ("double_to_double", "double(double) -> double", to_double),
    ("int64_to_double", "double(int) -> double", to_double),
    ("string_to_double", "double(string) -> double", to_double),
    ("uint64_to_double", "double(uint) -> double", to_double),
    ("int64_to_int64", "int(int) -> int", to_int),
    ("double_to_int64", "int(double) -> int", to_int),
    ("duration_to_int64", "int(duration) -> int", to_int),
    ("string_to_int64", "int(string) -> int", to_int),
    ("timestamp_to_int64", "int(timestamp) -> int", to_int),
    ("uint64_to_int64", "int(uint) -> int", to_int),
    ("string_to_string", "string(string) -> string", to_string),
    ("bool_to_string", "string(bool) -> string", to_string),
    ("bytes_to_string", "string(bytes) -> string", to_string),
    ("double_to_string", "string(double) -> string", to_string),
    ("duration_to_string", "string(duration) -> string", to_string),
    ("int64_to_string", "string(int) -> string", to_string),
    ("timestamp_to_string", "string(timestamp) -> string", to_string),
    ("uint64_to_string", "string(uint) -> string", to_string),
    ("uint64_to_uint64", "uint(uint) -> uint", to_uint),
    ("double_to_uint64", "uint(double) -> uint", to_uint),
    ("int64_to_uint64", "uint(int) -> uint", to_uint),
    ("string_to_uint64", "uint(string) -> uint", to_uint),
];

pub(super) fn failed<'a>(from: &Value<'_>, to: &str) -> Evaluated<'a> {
    Err(Error::other(format!("type conversion error from '{}' to '{to}'", from.type_name())))
}

fn to_bool<'a>(args: &[Value<'a>]) -> Evaluated<'a> {
    match &args[0] {
        Value::Bool(it) => Ok(Value::Bool(*it)),
        Value::String(text) => match &**text {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Value::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Value::Bool(false)),
            _ => failed(&args[0], "bool"),
        },
        _ => Err(Error::no_such_overload()),
    }
}

fn to_bytes<'a>(args: &[Value<'a>]) -> Evaluated<'a> {
    match &args[0] {
        it @ Value::Bytes(_) => Ok(it.clone()),
        Value::String(text) => Ok(Value::Bytes(text.as_bytes().into())),
        _ => Err(Error::no_such_overload()),
    }
}

#[expect(clippy::cast_precision_loss, reason = "the language rounds to the nearest double")]
fn to_double<'a>(args: &[Value<'a>]) -> Evaluated<'a> {
    match &args[0] {
        Value::Double(it) => Ok(Value::Double(*it)),
        Value::Int(it) => Ok(Value::Double(*it as f64)),
        Value::Uint(it) => Ok(Value::Double(*it as f64)),
        Value::String(text) => text.parse().map(Value::Double).or_else(|_| failed(&args[0], "double")),
        _ => Err(Error::no_such_overload()),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "only what is in range is converted")]
fn to_int<'a>(args: &[Value<'a>]) -> Evaluated<'a> {
    let overflow = || Error::other("integer overflow");
    match &args[0] {
        Value::Int(it) => Ok(Value::Int(*it)),
        Value::Uint(it) => i64::try_from(*it).map(Value::Int).map_err(|_| overflow()),
        Value::Double(it) if *it > -9_223_372_036_854_775_808.0 && *it < 9_223_372_036_854_775_807.0 => {
            Ok(Value::Int(*it as i64))
        }
        Value::Double(_) => Err(overflow()),
        Value::String(text) => text.parse().map(Value::Int).or_else(|_| failed(&args[0], "int")),
        Value::Timestamp(at) => Ok(Value::Int(at.seconds)),
        Value::Duration(nanos) => Ok(Value::Int(*nanos)),
        _ => Err(Error::no_such_overload()),
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "only what is in range is converted")]
fn to_uint<'a>(args: &[Value<'a>]) -> Evaluated<'a> {
    let overflow = || Error::other("unsigned integer overflow");
    match &args[0] {
        Value::Uint(it) => Ok(Value::Uint(*it)),
        Value::Int(it) => u64::try_from(*it).map(Value::Uint).map_err(|_| overflow()),
        Value::Double(it) if *it >= 0.0 && *it < 18_446_744_073_709_551_615.0 => Ok(Value::Uint(*it as u64)),
        Value::Double(_) => Err(overflow()),
        Value::String(text) => text.parse().map(Value::Uint).or_else(|_| failed(&args[0], "uint")),
        _ => Err(Error::no_such_overload()),
    }
}

fn to_string<'a>(args: &[Value<'a>]) -> Evaluated<'a> {
    match &args[0] {
        it @ Value::String(_) => Ok(it.clone()),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Ok(text.to_owned().into()),
            Err(_) => Err(Error::other("invalid UTF-8 in bytes, cannot convert to string")),
        },
        it => text_of(it).map(Value::from).ok_or_else(Error::no_such_overload),
    }
}
