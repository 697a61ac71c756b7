//! What can be seen of literals before anything runs: durations and times that are none, aggregates that mix types.

use super::checker::Types;
use crate::{
    declared::Type,
    syntax::ast::{Call, Expr, Id, Kind, Literal},
    timestamp::{duration, timestamp},
};

/// `mixes`: may lists and maps that are written out mix types?
pub(super) fn check(root: &Expr, types: &Types, mixes: bool, complain: &mut impl FnMut(Id, String)) {
    match &root.kind {
        Kind::Literal(_) | Kind::Ident(_) => {}
        Kind::Select(select) => check(&select.operand, types, mixes, complain),
        Kind::Call(call) => {
            of_call(call, complain);
            // What a format takes may mix types.
            let is_format = &*call.function == "format" && call.target.is_some();
            call.target.iter().for_each(|it| check(it, types, mixes, complain));
            for arg in &call.args {
                match &arg.kind {
                    Kind::List(list) if is_format => {
                        for it in &list.elements {
                            // Nor does it matter in lists and maps within it.
                            let is_aggregate = matches!(it.kind, Kind::List(_) | Kind::Map(_));
                            check(it, types, mixes || is_aggregate, complain);
                        }
                    }
                    _ => check(arg, types, mixes, complain),
                }
            }
        }
        Kind::List(list) => {
            same_type(
                list.elements.iter().enumerate().map(|it| (it.1, list.optional.contains(&it.0))),
                types,
                mixes,
                complain,
            );
            list.elements.iter().for_each(|it| check(it, types, mixes, complain));
        }
        Kind::Map(entries) => {
            same_type(entries.iter().map(|it| (&it.key, false)), types, mixes, complain);
            same_type(entries.iter().map(|it| (&it.value, it.is_optional)), types, mixes, complain);
            for entry in entries {
                check(&entry.key, types, mixes, complain);
                check(&entry.value, types, mixes, complain);
            }
        }
        Kind::Struct(it) => it.fields.iter().for_each(|it| check(&it.value, types, mixes, complain)),
        Kind::Fold(fold) => {
            for part in [&fold.range, &fold.init, &fold.condition, &fold.step, &fold.result] {
                check(part, types, mixes, complain);
            }
        }
    }
}

fn of_call(call: &Call, complain: &mut impl FnMut(Id, String)) {
    let text = |at: usize| match call.args.get(at).map(|it| (&it.kind, it.id)) {
        Some((Kind::Literal(Literal::String(text)), id)) => Some((text, id)),
        _ => None,
    };
    let (is_valid, id, name) = match (&*call.function, call.args.len()) {
        ("duration", 1) => text(0).map(|(it, id)| (duration(it).is_ok(), id, "duration")),
        ("timestamp", 1) => text(0).map(|(it, id)| (timestamp(it).is_ok(), id, "timestamp")),
        _ => None,
    }
    .unwrap_or((true, 0, ""));
    if !is_valid {
        complain(id, format!("invalid {name} argument"));
    }
}

fn same_type<'e>(
    items: impl Iterator<Item = (&'e Expr, bool)>,
    types: &Types,
    mixes: bool,
    complain: &mut impl FnMut(Id, String),
) {
    if mixes {
        return;
    }
    let mut first: Option<Type> = None;
    for (item, is_optional) in items {
        let of = match types.of(item) {
            Type::Optional(inner) if is_optional => (**inner).clone(),
            other => other.clone(),
        };
        match &first {
            None => first = Some(of),
            Some(first) if first.is_exactly(&of) => {}
            Some(first) => return complain(item.id, format!("expected type '{first}' but found '{of}'")),
        }
    }
}
