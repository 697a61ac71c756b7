//! Macros: calls that stand for something larger. What they become is upstream's, since costs follow from it.

use std::sync::Arc;

use super::{
    ast::{ACCUMULATOR, Call, Expr, Fold, Id, Kind, Literal, Select, UNUSED},
    parser::{Parser, Read},
};

pub(super) enum Expanded {
    Macro(Expr),
    /// It is no macro.
    Call(Call),
}

const SORT_INPUT: &str = "@__sortBy_input__";

/// What a call stands for; `id` is where it stands.
pub(super) fn expanded(parser: &mut Parser<'_>, id: Id, call: Call) -> Read<Expanded> {
    let mut m = Maker { parser, id };
    let macros = m.parser.macros;
    let Call { function, target, args } = call;
    let target = match (target, &*function, args.len()) {
        (None, "has", 1) => return m.has(args).map(Expanded::Macro),
        (Some(target), "bind", 3) if macros.bind && is_cel(&target) => return m.bind(args).map(Expanded::Macro),
        (None, ..) => return Ok(Expanded::Call(Call { function, target: None, args })),
        (Some(target), ..) => target,
    };
    let expr = match (&*function, args.len()) {
        ("all", 2) => m.all(target, args, 1),
        ("exists", 2) => m.exists(target, args, 1),
        ("exists_one", 2) => m.exists_one(target, args, 1),
        ("map", 2 | 3) => m.map(target, args),
        ("filter", 2) => m.filter(target, args),
        ("optMap", 2) => m.opt_map(target, args, true),
        ("optFlatMap", 2) => m.opt_map(target, args, false),
        ("all", 3) if macros.two_variables => m.all(target, args, 2),
        ("exists", 3) if macros.two_variables => m.exists(target, args, 2),
        ("exists_one" | "existsOne", 3) if macros.two_variables => m.exists_one(target, args, 2),
        ("transformList", 3 | 4) if macros.two_variables => m.transform_list(target, args),
        ("transformMap", 3 | 4) if macros.two_variables => m.transform_map(target, args, true),
        ("transformMapEntry", 3 | 4) if macros.two_variables => m.transform_map(target, args, false),
        ("sortBy", 2) if macros.sort_by => m.sort_by(target, args),
        _ => return Ok(Expanded::Call(Call { function, target: Some(target), args })),
    };
    expr.map(Expanded::Macro)
}

fn is_cel(expr: &Expr) -> bool {
    matches!(&expr.kind, Kind::Ident(name) if &**name == "cel")
}

struct Maker<'p, 'a> {
    parser: &'p mut Parser<'a>,
    id: Id,
}

/// The parts of a fold that differ.
struct Parts {
    init: Expr,
    condition: Expr,
    step: Expr,
    result: Expr,
}

impl Maker<'_, '_> {
    fn accumulator(&mut self) -> Read {
        self.parser.ident(self.id, ACCUMULATOR)
    }

    fn literal(&mut self, literal: Literal) -> Read {
        self.parser.literal(self.id, literal)
    }

    fn call(&mut self, function: &str, args: Vec<Expr>) -> Read {
        self.parser.call(self.id, function, args)
    }

    fn member(&mut self, function: &str, target: Expr, args: Vec<Expr>) -> Read {
        let call = Call { function: function.into(), target: Some(target), args };
        self.parser.node_at(self.id, Kind::Call(Box::new(call)))
    }

    /// The name of a variable, or a complaint.
    fn variable(&mut self, expr: &Expr, complaint: &str) -> Read<Arc<str>> {
        match &expr.kind {
            Kind::Ident(name) if !name.starts_with('.') => Ok(name.clone()),
            _ => Err(self.parser.complain_of(expr.id, complaint)),
        }
    }

    fn fold(&mut self, range: Expr, variables: (Arc<str>, Option<Arc<str>>), parts: Parts) -> Read {
        let (variable, variable2) = variables;
        let Parts { init, condition, step, result } = parts;
        let accumulator = ACCUMULATOR.into();
        self.parser.fold(self.id, Fold { range, variable, variable2, accumulator, init, condition, step, result })
    }

    fn has(&mut self, mut args: Vec<Expr>) -> Read {
        let Some(arg) = args.pop() else { return self.call("has", args) };
        let id = arg.id;
        match arg.kind {
            Kind::Select(select) if !select.is_test => {
                let select = Select { is_test: true, ..*select };
                self.parser.node_at(self.id, Kind::Select(Box::new(select)))
            }
            _ => Err(self.parser.complain_of(id, "invalid argument to has() macro")),
        }
    }

    fn variables(&mut self, args: &[Expr], n: usize) -> Read<(Arc<str>, Option<Arc<str>>)> {
        const COMPLAINT: &str = "argument must be a simple name";
        let first = self.variable(&args[0], COMPLAINT)?;
        let second = if n == 2 { Some(self.variable(&args[1], COMPLAINT)?) } else { None };
        if second.as_ref() == Some(&first) {
            let message = format!("duplicate variable name: {first}");
            return Err(self.parser.complain_of(args[1].id, &message));
        }
        Ok((first, second))
    }

    fn all(&mut self, range: Expr, mut args: Vec<Expr>, n: usize) -> Read {
        let variables = self.variables(&args, n)?;
        let predicate = args.swap_remove(n);
        let init = self.literal(Literal::Bool(true))?;
        let accumulator = self.accumulator()?;
        let condition = self.call("@not_strictly_false", vec![accumulator])?;
        let accumulator = self.accumulator()?;
        let step = self.call("_&&_", vec![accumulator, predicate])?;
        let result = self.accumulator()?;
        self.fold(range, variables, Parts { init, condition, step, result })
    }

    fn exists(&mut self, range: Expr, mut args: Vec<Expr>, n: usize) -> Read {
        let variables = self.variables(&args, n)?;
        let predicate = args.swap_remove(n);
        let init = self.literal(Literal::Bool(false))?;
        let accumulator = self.accumulator()?;
        let not = self.call("!_", vec![accumulator])?;
        let condition = self.call("@not_strictly_false", vec![not])?;
        let accumulator = self.accumulator()?;
        let step = self.call("_||_", vec![accumulator, predicate])?;
        let result = self.accumulator()?;
        self.fold(range, variables, Parts { init, condition, step, result })
    }

    fn exists_one(&mut self, range: Expr, mut args: Vec<Expr>, n: usize) -> Read {
        let variables = self.variables(&args, n)?;
        let predicate = args.swap_remove(n);
        let init = self.literal(Literal::Int(0))?;
        let condition = self.literal(Literal::Bool(true))?;
        let (accumulator, one) = (self.accumulator()?, self.literal(Literal::Int(1))?);
        let more = self.call("_+_", vec![accumulator, one])?;
        let accumulator = self.accumulator()?;
        let step = self.call("_?_:_", vec![predicate, more, accumulator])?;
        let (accumulator, one) = (self.accumulator()?, self.literal(Literal::Int(1))?);
        let result = self.call("_==_", vec![accumulator, one])?;
        self.fold(range, variables, Parts { init, condition, step, result })
    }

    /// `accumulator + [item]`, where `filter` holds.
    fn append(&mut self, filter: Option<Expr>, item: Expr) -> Read<Parts> {
        let init = self.parser.list(self.id, Vec::new())?;
        let condition = self.literal(Literal::Bool(true))?;
        let accumulator = self.accumulator()?;
        let list = self.parser.list(self.id, vec![item])?;
        let step = self.call("_+_", vec![accumulator, list])?;
        let step = self.guarded(filter, step)?;
        let result = self.accumulator()?;
        Ok(Parts { init, condition, step, result })
    }

    fn guarded(&mut self, filter: Option<Expr>, step: Expr) -> Read {
        let Some(filter) = filter else { return Ok(step) };
        let accumulator = self.accumulator()?;
        self.call("_?_:_", vec![filter, step, accumulator])
    }

    fn map(&mut self, range: Expr, mut args: Vec<Expr>) -> Read {
        let variable = self.variable(&args[0], "argument is not an identifier")?;
        let item = args.pop();
        let filter = if args.len() == 2 { args.pop() } else { None };
        let Some(item) = item else { return self.call("map", args) };
        let parts = self.append(filter, item)?;
        self.fold(range, (variable, None), parts)
    }

    fn filter(&mut self, range: Expr, mut args: Vec<Expr>) -> Read {
        let variable = self.variable(&args[0], "argument is not an identifier")?;
        let filter = args.pop();
        let item = self.parser.copy(&args[0])?;
        let parts = self.append(filter, item)?;
        self.fold(range, (variable, None), parts)
    }

    fn transform_list(&mut self, range: Expr, mut args: Vec<Expr>) -> Read {
        let variables = self.variables(&args, 2)?;
        let transform = args.swap_remove(args.len() - 1);
        let filter = if args.len() == 3 { args.pop() } else { None };
        let parts = self.append(filter, transform)?;
        self.fold(range, variables, parts)
    }

    fn transform_map(&mut self, range: Expr, mut args: Vec<Expr>, keeps_keys: bool) -> Read {
        let variables = self.variables(&args, 2)?;
        let transform = args.swap_remove(args.len() - 1);
        let filter = if args.len() == 3 { args.pop() } else { None };
        let init = self.parser.node_at(self.id, Kind::Map(Vec::new()))?;
        let condition = self.literal(Literal::Bool(true))?;
        let mut arguments = vec![self.accumulator()?];
        if keeps_keys {
            arguments.push(self.parser.ident(self.id, &variables.0)?);
        }
        arguments.push(transform);
        let step = self.call("cel.@mapInsert", arguments)?;
        let step = self.guarded(filter, step)?;
        let result = self.accumulator()?;
        self.fold(range, variables, Parts { init, condition, step, result })
    }

    /// A name for a value: a fold over nothing.
    fn named(&mut self, name: Arc<str>, value: Expr, result: Expr) -> Read {
        let range = self.parser.list(self.id, Vec::new())?;
        let condition = self.literal(Literal::Bool(false))?;
        let step = self.parser.ident(self.id, &name)?;
        let fold = Fold {
            range,
            variable: UNUSED.into(),
            variable2: None,
            accumulator: name,
            init: value,
            condition,
            step,
            result,
        };
        self.parser.fold(self.id, fold)
    }

    fn bind(&mut self, mut args: Vec<Expr>) -> Read {
        let complaint = "cel.bind() variable names must be simple identifiers";
        let name = self.variable(&args[0], complaint)?;
        let (Some(result), Some(value)) = (args.pop(), args.pop()) else { return self.call("cel.bind", args) };
        self.named(name, value, result)
    }

    fn opt_map(&mut self, target: Expr, mut args: Vec<Expr>, wraps: bool) -> Read {
        let macro_name = if wraps { "optMap" } else { "optFlatMap" };
        let complaint = format!("{macro_name}() variable name must be a simple identifier");
        let name = self.variable(&args[0], &complaint)?;
        let Some(mapped) = args.pop() else { return self.call(macro_name, args) };
        let copy = self.parser.copy(&target)?;
        let has_value = self.member("hasValue", target, Vec::new())?;
        let value = self.member("value", copy, Vec::new())?;
        let mut some = self.named(name, value, mapped)?;
        if wraps {
            some = self.call("optional.of", vec![some])?;
        }
        let none = self.call("optional.none", Vec::new())?;
        self.call("_?_:_", vec![has_value, some, none])
    }

    fn sort_by(&mut self, target: Expr, args: Vec<Expr>) -> Read {
        if matches!(target.kind, Kind::Map(_) | Kind::Struct(_) | Kind::Literal(_)) {
            let complaint =
                "sortBy can only be applied to a list, identifier, comprehension, call or select expression";
            return Err(self.parser.complain_of(target.id, complaint));
        }
        let input = self.parser.ident(self.id, SORT_INPUT)?;
        let keys = self.map(input, args)?;
        let input = self.parser.ident(self.id, SORT_INPUT)?;
        let sorted = self.member("@sortByAssociatedKeys", input, vec![keys])?;
        self.named(SORT_INPUT.into(), target, sorted)
    }
}
