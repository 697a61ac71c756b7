//! From a checked tree to what is evaluated: names become places, constants are folded, overloads are chosen.

use std::{collections::BTreeSet, sync::Arc};

use super::cost::Rule;
use crate::{
    budget,
    declared::Type,
    env::Env,
    functions::{self, Overload},
    pattern::Pattern,
    syntax::ast::{self, ACCUMULATOR, Expr, Kind, Literal},
    typing::checker::Types,
    value::{Entries, Key, Text, Value},
};

#[derive(Debug)]
pub(super) enum Plan {
    Const(Value<'static>),
    Variable(usize),
    Local(usize),
    Field(Box<Field>),
    Index(Box<Index>),
    Call(Box<Call>),
    Regex(Box<RegexCall>),
    Equal(Box<[Plan; 2]>, bool),
    And(Box<[Plan; 2]>),
    Or(Box<[Plan; 2]>),
    Ternary(Box<[Plan; 3]>),
    NotStrictlyFalse(Box<Plan>),
    List(Box<ListPlan>),
    Map(Vec<EntryPlan>),
    Struct(Box<StructPlan>),
    InSet(Box<(Plan, BTreeSet<Key<'static>>)>),
    /// `or`, and `orValue`.
    OrElse(Box<[Plan; 2]>, bool),
    Append(Box<Append>),
    Insert(Box<Insert>),
    Bind(Box<Bind>),
    Fold(Box<Fold>),
}

/// How a field is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Plain,
    Test,
    Optional,
}

#[derive(Debug)]
pub(super) struct Field {
    pub(super) operand: Plan,
    pub(super) name: Arc<str>,
    pub(super) mode: Mode,
    pub(super) cost: u64,
}

#[derive(Debug)]
pub(super) struct Index {
    pub(super) operand: Plan,
    pub(super) key: Plan,
    pub(super) mode: Mode,
    pub(super) cost: u64,
}

#[derive(Debug)]
pub(super) struct Call {
    pub(super) function: &'static str,
    pub(super) overloads: Vec<&'static Overload>,
    pub(super) args: Vec<Plan>,
    pub(super) rule: Rule,
}

/// With a pattern that is constant.
#[derive(Debug)]
pub(super) struct RegexCall {
    pub(super) function: &'static str,
    pub(super) pattern: Pattern,
    pub(super) args: Vec<Plan>,
}

#[derive(Debug)]
pub(super) struct ListPlan {
    pub(super) elements: Vec<Plan>,
    pub(super) optional: Vec<usize>,
}

#[derive(Debug)]
pub(super) struct EntryPlan {
    pub(super) key: Plan,
    pub(super) value: Plan,
    pub(super) is_optional: bool,
}

#[derive(Debug)]
pub(super) struct StructPlan {
    pub(super) name: Arc<str>,
    pub(super) fields: Vec<(Arc<str>, Plan, bool)>,
}

/// `accumulator + [item]`, in place.
#[derive(Debug)]
pub(super) struct Append {
    pub(super) slot: usize,
    pub(super) item: Plan,
    pub(super) cost: u64,
}

#[derive(Debug)]
pub(super) struct Insert {
    pub(super) slot: usize,
    pub(super) args: Vec<Plan>,
}

#[derive(Debug)]
pub(super) struct Bind {
    pub(super) slot: usize,
    pub(super) value: Plan,
    pub(super) result: Plan,
}

#[derive(Debug)]
pub(super) struct Fold {
    pub(super) range: Plan,
    pub(super) init: Plan,
    pub(super) condition: Plan,
    pub(super) step: Plan,
    pub(super) result: Plan,
    pub(super) accumulator: usize,
    pub(super) variable: usize,
    pub(super) variable2: Option<usize>,
}

pub(super) struct Planner<'e> {
    types: &'e Types,
    env: &'e Env,
    pub(super) variables: Vec<Arc<str>>,
    pub(super) n_slots: usize,
    locals: Vec<(Arc<str>, usize)>,
}

impl<'e> Planner<'e> {
    pub(super) fn new(types: &'e Types, env: &'e Env) -> Self {
        Self { types, env, variables: Vec::new(), n_slots: 0, locals: Vec::new() }
    }

    pub(super) fn plan(&mut self, expr: &Expr) -> Plan {
        match &expr.kind {
            Kind::Literal(literal) => Plan::Const(constant(literal)),
            Kind::Ident(name) => self.ident(name),
            Kind::Select(select) => {
                let operand = self.plan(&select.operand);
                let mode = if select.is_test { Mode::Test } else { Mode::Plain };
                field(operand, select.field.clone(), mode)
            }
            Kind::Call(call) => self.call(expr, call),
            Kind::List(list) => {
                let elements: Vec<Plan> = list.elements.iter().map(|it| self.plan(it)).collect();
                if list.optional.is_empty()
                    && let Some(values) = elements.iter().map(as_constant).collect::<Option<Vec<_>>>()
                {
                    return Plan::Const(values.into());
                }
                Plan::List(Box::new(ListPlan { elements, optional: list.optional.clone() }))
            }
            Kind::Map(entries) => self.map(entries),
            Kind::Struct(it) => {
                let fields = it.fields.iter().map(|it| (it.name.clone(), self.plan(&it.value), it.is_optional));
                let fields = fields.collect();
                Plan::Struct(Box::new(StructPlan { name: it.name.clone(), fields }))
            }
            Kind::Fold(fold) if fold.is_bind() => {
                let value = self.plan(&fold.init);
                let slot = self.push(&fold.accumulator);
                let result = self.plan(&fold.result);
                self.locals.pop();
                Plan::Bind(Box::new(Bind { slot, value, result }))
            }
            Kind::Fold(fold) => self.fold(fold),
        }
    }

    /// A place for a variable; each has one of its own, so that none is written over.
    fn push(&mut self, name: &Arc<str>) -> usize {
        let slot = self.locals.last().map_or(0, |it| it.1 + 1);
        self.locals.push((name.clone(), slot));
        self.n_slots = self.n_slots.max(slot + 1);
        slot
    }

    fn ident(&mut self, name: &Arc<str>) -> Plan {
        if let Some((_, slot)) = self.locals.iter().rev().find(|it| it.0 == *name) {
            return Plan::Local(*slot);
        }
        let global = name.strip_prefix('.').unwrap_or(name);
        if self.env.declared(global).is_none()
            && let Some(of) = functions::type_named(global)
        {
            return Plan::Const(Value::Type(Text::Shared(of.value_name().into())));
        }
        let at = self.variables.iter().position(|it| &**it == global).unwrap_or_else(|| {
            self.variables.push(global.into());
            self.variables.len() - 1
        });
        Plan::Variable(at)
    }

    fn map(&mut self, entries: &[ast::Entry]) -> Plan {
        let entries: Vec<EntryPlan> = entries
            .iter()
            .map(|it| EntryPlan { key: self.plan(&it.key), value: self.plan(&it.value), is_optional: it.is_optional })
            .collect();
        let mut folded = Entries::default();
        for it in &entries {
            let key = as_constant(&it.key).and_then(Key::of);
            let (Some(key), Some(value), false) = (key, as_constant(&it.value), it.is_optional) else {
                return Plan::Map(entries);
            };
            // A key that is there twice is an error of the evaluation.
            if folded.by_key.insert(key, value).is_some() {
                return Plan::Map(entries);
            }
        }
        Plan::Const(folded.into())
    }

    fn call(&mut self, expr: &Expr, call: &ast::Call) -> Plan {
        let target = call.target.as_ref().map(|it| self.plan(it));
        let args: Vec<Plan> = target.into_iter().chain(call.args.iter().map(|it| self.plan(it))).collect();
        let overloads = self.types.overloads(expr.id).to_vec();
        match (&*call.function, args.len()) {
            ("_&&_", 2) => two(args).map_or_else(unplanned, |it| Plan::And(Box::new(it))),
            ("_||_", 2) => two(args).map_or_else(unplanned, |it| Plan::Or(Box::new(it))),
            ("_==_", 2) => two(args).map_or_else(unplanned, |it| Plan::Equal(Box::new(it), true)),
            ("_!=_", 2) => two(args).map_or_else(unplanned, |it| Plan::Equal(Box::new(it), false)),
            ("_?_:_", 3) => <[Plan; 3]>::try_from(args).map_or_else(|_| unplanned(), |it| Plan::Ternary(Box::new(it))),
            ("@not_strictly_false", 1) => one(args).map_or_else(unplanned, |it| Plan::NotStrictlyFalse(Box::new(it))),
            ("or", 2) if is_one(&overloads, "optional_or_optional") => {
                two(args).map_or_else(unplanned, |it| Plan::OrElse(Box::new(it), false))
            }
            ("orValue", 2) if is_one(&overloads, "optional_orValue_value") => {
                two(args).map_or_else(unplanned, |it| Plan::OrElse(Box::new(it), true))
            }
            ("_[_]", 2) => two(args).map_or_else(unplanned, |[operand, key]| index(operand, key, Mode::Plain)),
            ("_[?_]", 2) => two(args).map_or_else(unplanned, |[operand, key]| index(operand, key, Mode::Optional)),
            ("_?._", 2) => match two(args) {
                Some([operand, Plan::Const(Value::String(name))]) => field(operand, (&*name).into(), Mode::Optional),
                _ => unplanned(),
            },
            ("@in", 2) => match two(args) {
                Some([needle, list]) => is_in(needle, list, overloads),
                None => unplanned(),
            },
            (function, _) => plain_call(function, overloads, args),
        }
    }

    fn fold(&mut self, fold: &ast::Fold) -> Plan {
        let range = self.plan(&fold.range);
        let init = self.plan(&fold.init);
        let depth = self.locals.len();
        let accumulator = self.push(&fold.accumulator);
        let variable = self.push(&fold.variable);
        let variable2 = fold.variable2.as_ref().map(|it| self.push(it));
        let condition = self.plan(&fold.condition);
        let step = self.step(&fold.step, accumulator);
        self.locals.truncate(depth + 1);
        let result = self.plan(&fold.result);
        self.locals.truncate(depth);
        Plan::Fold(Box::new(Fold { range, init, condition, step, result, accumulator, variable, variable2 }))
    }

    /// A step that makes the accumulator longer does it in place. Only macros name the accumulator, and each step once.
    fn step(&mut self, step: &Expr, slot: usize) -> Plan {
        let Kind::Call(call) = &step.kind else { return self.plan(step) };
        match (&*call.function, &call.args[..]) {
            ("_?_:_", [filter, more, same]) if is_accumulator(same) => {
                let filter = self.plan(filter);
                let more = self.step(more, slot);
                let same = self.plan(same);
                Plan::Ternary(Box::new([filter, more, same]))
            }
            ("_+_", [of, list]) if is_accumulator(of) => match &list.kind {
                Kind::List(it) if it.elements.len() == 1 && it.optional.is_empty() => {
                    let item = self.plan(&it.elements[0]);
                    let list = if matches!(item, Plan::Const(_)) { 0 } else { budget::LIST };
                    // The accumulator is looked at, the list made, the sum done.
                    Plan::Append(Box::new(Append { slot, item, cost: budget::SELECT + list + 1 }))
                }
                _ => self.plan(step),
            },
            ("cel.@mapInsert", [of, rest @ ..]) if is_accumulator(of) => {
                let args = rest.iter().map(|it| self.plan(it)).collect();
                Plan::Insert(Box::new(Insert { slot, args }))
            }
            _ => self.plan(step),
        }
    }
}

fn is_accumulator(expr: &Expr) -> bool {
    matches!(&expr.kind, Kind::Ident(name) if &**name == ACCUMULATOR)
}

fn is_one(overloads: &[&Overload], id: &str) -> bool {
    matches!(overloads, [one] if one.id == id)
}

/// What the check lets through has as many arguments as it needs.
fn unplanned() -> Plan {
    Plan::Call(Box::new(Call { function: "", overloads: Vec::new(), args: Vec::new(), rule: Rule::One }))
}

fn one(args: Vec<Plan>) -> Option<Plan> {
    args.into_iter().next()
}

fn two(args: Vec<Plan>) -> Option<[Plan; 2]> {
    args.try_into().ok()
}

/// A value by a way from a variable: upstream charges its steps, and nothing else, for it.
fn is_way(plan: &Plan) -> bool {
    matches!(plan, Plan::Variable(_) | Plan::Local(_) | Plan::Field(_) | Plan::Index(_) | Plan::Ternary(_))
}

fn field(operand: Plan, name: Arc<str>, mode: Mode) -> Plan {
    let start = u64::from(!is_way(&operand)) * budget::SELECT;
    let cost = if mode == Mode::Test { 0 } else { budget::SELECT + start };
    Plan::Field(Box::new(Field { operand, name, mode, cost }))
}

fn index(operand: Plan, key: Plan, mode: Mode) -> Plan {
    let start = u64::from(!is_way(&operand)) * budget::SELECT;
    // A key that is a way itself is charged for its first step, and that is this one.
    let step = if is_way(&key) && !matches!(key, Plan::Ternary(_)) { 0 } else { budget::SELECT };
    Plan::Index(Box::new(Index { operand, key, mode, cost: start + step }))
}

fn is_in(needle: Plan, list: Plan, overloads: Vec<&'static Overload>) -> Plan {
    if let Plan::Const(Value::List(items)) = &list
        && !items.is_empty()
        && let Some(keys) = items.iter().map(|it| Key::of(it.clone())).collect::<Option<BTreeSet<_>>>()
    {
        return Plan::InSet(Box::new((needle, keys)));
    }
    plain_call("@in", overloads, vec![needle, list])
}

fn plain_call(function: &str, overloads: Vec<&'static Overload>, args: Vec<Plan>) -> Plan {
    let rule = Rule::of(function, if let [one] = overloads[..] { Some(one) } else { None });
    let function = functions::named(function).map_or("", |it| it.name);
    if let Some(folded) = folded(function, &overloads, &args) {
        return Plan::Const(folded);
    }
    if matches!(function, "matches" | "find" | "findAll")
        && let Some(Plan::Const(Value::String(pattern))) = args.get(1)
    {
        return Plan::Regex(Box::new(RegexCall { function, pattern: Pattern::new(pattern), args }));
    }
    Plan::Call(Box::new(Call { function, overloads, args, rule }))
}

/// A conversion of a constant is one.
fn folded(function: &str, overloads: &[&'static Overload], args: &[Plan]) -> Option<Value<'static>> {
    let is_conversion =
        matches!(function, "bool" | "bytes" | "double" | "duration" | "int" | "string" | "timestamp" | "uint");
    match (is_conversion, overloads, args) {
        (true, [overload], [Plan::Const(value)]) => (overload.run)(std::slice::from_ref(value)).ok(),
        _ => None,
    }
}

fn as_constant(plan: &Plan) -> Option<Value<'static>> {
    match plan {
        Plan::Const(value) => Some(value.clone()),
        _ => None,
    }
}

fn constant(literal: &Literal) -> Value<'static> {
    match literal {
        Literal::Null => Value::Null,
        Literal::Bool(it) => Value::Bool(*it),
        Literal::Int(it) => Value::Int(*it),
        Literal::Uint(it) => Value::Uint(*it),
        Literal::Double(it) => Value::Double(*it),
        Literal::String(it) => Value::String(Text::Shared(it.clone())),
        Literal::Bytes(it) => Value::Bytes(it.clone()),
    }
}

/// Does a value fit the type that an overload wants, as far as its first item shows?
pub(super) fn fits(of: &Type, value: &Value<'_>) -> bool {
    match (of, value) {
        (Type::Dyn | Type::Param(_) | Type::Var(_) | Type::Error, _)
        | (Type::Null, Value::Null)
        | (Type::Bool, Value::Bool(_))
        | (Type::Int, Value::Int(_))
        | (Type::Uint, Value::Uint(_))
        | (Type::Double, Value::Double(_))
        | (Type::String, Value::String(_))
        | (Type::Bytes, Value::Bytes(_))
        | (Type::Duration, Value::Duration(_))
        | (Type::Timestamp, Value::Timestamp(_))
        | (Type::Type(_), Value::Type(_))
        | (Type::Optional(_), Value::Optional(_))
        | (Type::Map(_) | Type::Object(_) | Type::Open(_), Value::Map(_)) => true,
        (Type::List(of), Value::List(list)) => list.get(0).is_none_or(|it| fits(of, &it)),
        (Type::Opaque(name), Value::Opaque(_)) => value.type_name() == *name,
        _ => false,
    }
}
