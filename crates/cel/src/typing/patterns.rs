//! Regular expressions that are written out: is each one, and do all of them together take no more than they may?

use crate::{
    pattern,
    syntax::ast::{Call, Expr, Id, Kind, Literal},
};

pub(super) fn check(root: &Expr, complain: &mut impl FnMut(Id, String)) {
    let mut within = |it: &Expr| check(it, complain);
    match &root.kind {
        Kind::Literal(_) | Kind::Ident(_) => {}
        Kind::Select(select) => within(&select.operand),
        Kind::Call(call) => {
            call.target.iter().chain(&call.args).for_each(&mut within);
            of_call(call, complain);
        }
        Kind::List(list) => list.elements.iter().for_each(within),
        Kind::Map(entries) => entries.iter().flat_map(|it| [&it.key, &it.value]).for_each(within),
        Kind::Struct(it) => it.fields.iter().for_each(|it| within(&it.value)),
        Kind::Fold(fold) => {
            [&fold.range, &fold.init, &fold.condition, &fold.step, &fold.result].into_iter().for_each(within);
        }
    }
}

fn of_call(call: &Call, complain: &mut impl FnMut(Id, String)) {
    let at = match (&*call.function, call.target.is_some()) {
        ("matches" | "find" | "findAll", true) => 0,
        ("matches", false) => 1,
        _ => return,
    };
    let Some(Expr { kind: Kind::Literal(Literal::String(text)), id, .. }) = call.args.get(at) else { return };
    match pattern::check(text) {
        Err(error) if error == pattern::OUT_OF_FUEL => complain(*id, error),
        // Of the others upstream's check says nothing; they fail when they run.
        Err(_) if &*call.function == "matches" => complain(*id, "invalid matches argument".to_owned()),
        Ok(()) | Err(_) => {}
    }
}
