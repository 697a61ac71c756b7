//! Kubernetes quantities: parsed, compared, added.

use std::cmp::Ordering;

use corten_meta::Quantity;

use super::{Evaluated, Row};
use crate::{
    error::Error,
    value::{Opaque, Value},
};

pub(super) const ROWS: &[Row] = &[
    ("string_to_quantity", "quantity(string) -> Quantity", parse),
    ("is_quantity_string", "isQuantity(string) -> bool", |it| Ok(Value::Bool(read(it)?.is_ok()))),
    ("quantity_sign", ".sign(Quantity) -> int", |it| {
        one(it, |it| Ok(Value::Int(i64::from(it.cmp(&Quantity::ZERO) as i8))))
    }),
    ("quantity_is_greater_than", ".isGreaterThan(Quantity, Quantity) -> bool", |it| two(it, |a, b| Value::Bool(a > b))),
    ("quantity_is_less_than", ".isLessThan(Quantity, Quantity) -> bool", |it| two(it, |a, b| Value::Bool(a < b))),
    ("quantity_compare_to", ".compareTo(Quantity, Quantity) -> int", |it| two(it, |a, b| order(a.cmp(&b)))),
    ("quantity_get_float", ".asApproximateFloat(Quantity) -> double", |it| {
        one(it, |it| Ok(Value::Double(it.approximate())))
    }),
    ("quantity_get_int", ".asInteger(Quantity) -> int", |it| {
        one(it, |it| it.exact().map(Value::Int).ok_or_else(|| Error::other("cannot convert value to integer")))
    }),
    ("quantity_is_integer", ".isInteger(Quantity) -> bool", |it| one(it, |it| Ok(Value::Bool(it.exact().is_some())))),
    ("quantity_add", ".add(Quantity, Quantity) -> Quantity", |it| two(it, |a, b| made(a.plus(b)))),
    ("quantity_add_int", ".add(Quantity, int) -> Quantity", |it| two(it, |a, b| made(a.plus(b)))),
    ("quantity_sub", ".sub(Quantity, Quantity) -> Quantity", |it| two(it, |a, b| made(a.minus(b)))),
    ("quantity_sub_int", ".sub(Quantity, int) -> Quantity", |it| two(it, |a, b| made(a.minus(b)))),
];

pub(super) fn order<'a>(order: Ordering) -> Value<'a> {
    Value::Int(i64::from(order as i8))
}

fn made<'a>(quantity: Quantity) -> Value<'a> {
    Opaque::Quantity(quantity).into()
}

fn read(args: &[Value<'_>]) -> Result<Result<Quantity, String>, Box<Error>> {
    match &args[0] {
        Value::String(text) => Ok(text.parse::<Quantity>().map_err(|it| it.to_string())),
        _ => Err(Error::no_such_overload()),
    }
}

fn parse<'a>(args: &[Value<'a>]) -> Evaluated<'a> {
    read(args)?.map(made).map_err(Error::other)
}

fn get(value: &Value<'_>) -> Result<Quantity, Box<Error>> {
    match value {
        Value::Int(units) => return Ok(Quantity::units(*units)),
        Value::Opaque(it) => {
            if let Opaque::Quantity(it) = &**it {
                return Ok(*it);
            }
        }
        _ => {}
    }
    Err(Error::no_such_overload())
}

fn one<'a>(args: &[Value<'a>], make: fn(Quantity) -> Evaluated<'a>) -> Evaluated<'a> {
    make(get(&args[0])?)
}

fn two<'a>(args: &[Value<'a>], make: fn(Quantity, Quantity) -> Value<'a>) -> Evaluated<'a> {
    Ok(make(get(&args[0])?, get(&args[1])?))
}
