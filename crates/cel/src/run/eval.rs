//! The evaluation: one function that calls itself, a meter, places for variables.
//!
//! What is large is in functions of its own, so that a level of an expression takes little of the stack.

use std::{mem, sync::Arc};

use smallvec::SmallVec;

use super::{
    Activation, Program, fuel,
    plan::{
        Append, Bind, Call, EntryPlan, Field, Fold, Index, Insert, ListPlan, Mode, Plan, RegexCall, StructPlan, fits,
    },
};
use crate::{
    budget,
    error::Error,
    functions::{self, Evaluated, insert_into, regex},
    value::{Entries, Items, Key, List, Map, Text, Value, text_of},
};

pub(super) fn evaluate<'a>(program: &'a Program, activation: &Activation<'a>, limit: u64) -> (Evaluated<'a>, u64) {
    let mut run = Run {
        program,
        activation,
        variables: SmallVec::from_elem(None, program.variables.len()),
        slots: SmallVec::from_elem(Ok(Value::Null), program.n_slots),
        cost: 0,
        limit,
    };
    let result = run.eval(&program.root);
    (result, run.cost)
}

struct Run<'p, 'a> {
    program: &'a Program,
    activation: &'p Activation<'a>,
    variables: SmallVec<[Option<Value<'a>>; 4]>,
    slots: SmallVec<[Evaluated<'a>; 4]>,
    cost: u64,
    limit: u64,
}

impl<'a> Run<'_, 'a> {
    fn charge(&mut self, units: u64) -> Result<(), Box<Error>> {
        self.cost = self.cost.saturating_add(units);
        if self.cost > self.limit { Err(Error::cost()) } else { Ok(()) }
    }

    fn eval(&mut self, plan: &'a Plan) -> Evaluated<'a> {
        match plan {
            Plan::Const(Value::String(Text::Shared(text))) => Ok(Value::String(Text::Borrowed(text))),
            Plan::Const(value) => Ok(value.clone()),
            Plan::Variable(at) => self.variable(*at),
            Plan::Local(slot) => {
                self.charge(budget::SELECT)?;
                self.slots[*slot].clone()
            }
            Plan::Field(it) => self.field(it),
            Plan::Index(it) => self.index(it),
            Plan::Call(it) => self.call(it),
            Plan::Regex(it) => self.regex(it),
            Plan::Equal(it, wanted) => self.equal(it, *wanted),
            Plan::And(it) => self.logical(it, false),
            Plan::Or(it) => self.logical(it, true),
            Plan::Ternary(it) => self.ternary(it),
            Plan::NotStrictlyFalse(it) => self.not_strictly_false(it),
            Plan::List(it) => self.list(it),
            Plan::Map(it) => self.map(it),
            Plan::Struct(it) => self.structure(it),
            Plan::InSet(it) => {
                let needle = self.eval(&it.0)?;
                Ok(Value::Bool(Key::to_find(&needle).is_some_and(|needle| it.1.contains(&needle))))
            }
            Plan::OrElse(it, gives_value) => self.or_else(it, *gives_value),
            Plan::Append(it) => self.append(it),
            Plan::Insert(it) => self.insert(it),
            Plan::Bind(it) => self.bind(it),
            Plan::Fold(it) => self.fold(it),
        }
    }

    #[inline(never)]
    fn variable(&mut self, at: usize) -> Evaluated<'a> {
        self.charge(budget::SELECT)?;
        if let Some(value) = &self.variables[at] {
            return Ok(value.clone());
        }
        let name = &*self.program.variables[at];
        let value = self.activation.root(name).ok_or_else(|| Error::other(format!("no such attribute(s): {name}")))?;
        self.variables[at] = Some(value.clone());
        Ok(value.clone())
    }

    #[inline(never)]
    fn field(&mut self, it: &'a Field) -> Evaluated<'a> {
        let operand = self.eval(&it.operand)?;
        self.charge(it.cost)?;
        match operand {
            Value::Optional(inner) => self.optional_field(inner.as_deref(), it),
            Value::Map(Map::Composed) if it.mode == Mode::Plain => match self.activation.composed_value(&it.name) {
                Some(value) => value,
                None => Err(Error::no_such_key(&it.name)),
            },
            operand => {
                let found = functions::field(&operand, &it.name)?;
                match (it.mode, found) {
                    (Mode::Test, found) => Ok(Value::Bool(found.is_some())),
                    (Mode::Plain, Some(value)) => Ok(value),
                    (Mode::Plain, None) => Err(Error::no_such_key(&it.name)),
                    (Mode::Optional, found) => Ok(found.map_or(Value::NONE, Value::some)),
                }
            }
        }
    }

    /// A field of what may be absent is as absent.
    #[inline(never)]
    fn optional_field(&mut self, inner: Option<&Value<'a>>, it: &'a Field) -> Evaluated<'a> {
        let found = match inner {
            Some(value) => functions::field(value, &it.name)?,
            None => None,
        };
        match it.mode {
            Mode::Test => Ok(Value::Bool(found.is_some())),
            Mode::Plain | Mode::Optional => Ok(found.map_or(Value::NONE, Value::some)),
        }
    }

    #[inline(never)]
    fn index(&mut self, it: &'a Index) -> Evaluated<'a> {
        let operand = self.eval(&it.operand)?;
        let key = self.eval(&it.key)?;
        self.charge(it.cost)?;
        let (is_optional, inner) = match &operand {
            Value::Optional(None) => return Ok(Value::NONE),
            Value::Optional(Some(inner)) => (true, &**inner),
            other => (it.mode == Mode::Optional, other),
        };
        let found = functions::found(inner, &key)?;
        if is_optional {
            return Ok(found.map_or(Value::NONE, Value::some));
        }
        found.ok_or_else(|| match (inner, Key::to_find(&key)) {
            (Value::List(_), Some(at)) => Error::other(format!("index out of bounds: {at}")),
            (_, Some(key)) => Error::no_such_key(key),
            (_, None) => Error::no_such_key(text_of(&key).unwrap_or_default()),
        })
    }

    #[inline(never)]
    fn call(&mut self, it: &'a Call) -> Evaluated<'a> {
        let mut args: SmallVec<[Value<'a>; 3]> = SmallVec::new();
        for arg in &it.args {
            let value = self.eval(arg)?;
            args.push(value);
        }
        let result = match &it.overloads[..] {
            [one] => (one.run)(&args),
            several => match several.iter().find(|it| it.args.iter().zip(&args).all(|(of, it)| fits(of, it))) {
                Some(overload) => (overload.run)(&args),
                None => Err(no_such_overload(it.function, &args)),
            },
        };
        let result = match result {
            Err(error) if error.message == "no such overload" => Err(no_such_overload(it.function, &args)),
            other => other,
        };
        self.charge(it.rule.charge(&args, result.as_ref().ok()))?;
        match &result {
            Ok(Value::String(Text::Shared(text))) => fuel::spend_made(text.len()),
            Ok(Value::Bytes(bytes)) => fuel::spend_made(bytes.len()),
            _ => true,
        };
        interrupted(result)
    }

    #[inline(never)]
    fn regex(&mut self, it: &'a RegexCall) -> Evaluated<'a> {
        let mut args: SmallVec<[Value<'a>; 3]> = SmallVec::new();
        for arg in &it.args {
            let value = self.eval(arg)?;
            args.push(value);
        }
        self.charge(super::cost::Rule::Regex.charge(&args, None))?;
        let machine = match it.pattern.machine() {
            Ok(machine) => machine,
            Err(error) => return interrupted(Err(Error::other(format!("Illegal regex: {error}")))),
        };
        interrupted(regex::run_compiled(it.function, &machine, &args))
    }

    #[inline(never)]
    fn equal(&mut self, it: &'a [Plan; 2], wanted: bool) -> Evaluated<'a> {
        let args = [self.eval(&it[0])?, self.eval(&it[1])?];
        self.charge(super::cost::Rule::Equal.charge(&args, None))?;
        let is_equal = args[0] == args[1];
        interrupted(Ok(Value::Bool(is_equal == wanted)))
    }

    /// `&&` ends at false, `||` at true; an error counts only where nothing ends it.
    #[inline(never)]
    fn logical(&mut self, it: &'a [Plan; 2], end: bool) -> Evaluated<'a> {
        let mut wrong = None;
        for term in it {
            match self.eval(term) {
                Ok(Value::Bool(value)) if value == end => return Ok(Value::Bool(end)),
                Ok(Value::Bool(_)) => {}
                Ok(_) => wrong = wrong.or_else(|| Some(Error::no_such_overload())),
                Err(error) if error.is_final() => return Err(error),
                Err(error) => wrong = wrong.or(Some(error)),
            }
        }
        wrong.map_or(Ok(Value::Bool(!end)), Err)
    }

    #[inline(never)]
    fn ternary(&mut self, it: &'a [Plan; 3]) -> Evaluated<'a> {
        match self.eval(&it[0])? {
            Value::Bool(true) => self.eval(&it[1]),
            Value::Bool(false) => self.eval(&it[2]),
            _ => Err(Error::no_such_overload()),
        }
    }

    #[inline(never)]
    fn not_strictly_false(&mut self, it: &'a Plan) -> Evaluated<'a> {
        let holds = match self.eval(it) {
            Ok(Value::Bool(value)) => value,
            Err(error) if error.is_final() => return Err(error),
            _ => true,
        };
        self.charge(1)?;
        Ok(Value::Bool(holds))
    }

    #[inline(never)]
    fn list(&mut self, it: &'a ListPlan) -> Evaluated<'a> {
        let mut items = Vec::with_capacity(it.elements.len());
        for (at, element) in it.elements.iter().enumerate() {
            let value = self.eval(element)?;
            if !it.optional.contains(&at) {
                items.push(value);
                continue;
            }
            match value {
                Value::Optional(None) => {}
                Value::Optional(Some(value)) => items.push((*value).clone()),
                other => return Err(not_optional(&other)),
            }
        }
        self.charge(budget::LIST)?;
        Ok(items.into())
    }

    #[inline(never)]
    fn map(&mut self, entries: &'a [EntryPlan]) -> Evaluated<'a> {
        let mut made = Entries::default();
        for entry in entries {
            let key = self.eval(&entry.key)?;
            let value = self.eval(&entry.value)?;
            let Some(value) = present(value, entry.is_optional)? else { continue };
            let name = key.type_name().to_owned();
            let key = Key::of(key).ok_or_else(|| Error::other(format!("unsupported key type: {name}")))?;
            if made.by_key.contains_key(&key) {
                return Err(Error::other(format!("Failed with repeated key: {key}")));
            }
            made.by_key.insert(key, value);
        }
        self.charge(budget::MAP)?;
        Ok(made.into())
    }

    #[inline(never)]
    fn structure(&mut self, it: &'a StructPlan) -> Evaluated<'a> {
        let mut made = Entries { of: Some(it.name.clone()), ..Entries::default() };
        for (name, plan, is_optional) in &it.fields {
            let value = self.eval(plan)?;
            if let Some(value) = present(value, *is_optional)? {
                made.by_key.insert(Key::String(Text::Borrowed(name)), value);
            }
        }
        self.charge(budget::STRUCT)?;
        Ok(made.into())
    }

    #[inline(never)]
    fn or_else(&mut self, it: &'a [Plan; 2], gives_value: bool) -> Evaluated<'a> {
        match self.eval(&it[0])? {
            Value::Optional(None) => self.eval(&it[1]),
            Value::Optional(Some(value)) if gives_value => Ok((*value).clone()),
            some @ Value::Optional(_) => Ok(some),
            _ => Err(Error::no_such_overload()),
        }
    }

    #[inline(never)]
    fn append(&mut self, it: &'a Append) -> Evaluated<'a> {
        let item = self.eval(&it.item)?;
        self.charge(it.cost)?;
        // The accumulator is taken out of its place, so that nobody else holds it, and it grows where it is.
        let Value::List(List { items: Items::Made(mut items), declared }) = self.take(it.slot)? else {
            return Err(Error::no_such_overload());
        };
        Arc::make_mut(&mut items).push(item);
        Ok(Value::List(List { items: Items::Made(items), declared }))
    }

    fn take(&mut self, slot: usize) -> Evaluated<'a> {
        mem::replace(&mut self.slots[slot], Ok(Value::Null))
    }

    #[inline(never)]
    fn insert(&mut self, it: &'a Insert) -> Evaluated<'a> {
        let mut args: SmallVec<[Value<'a>; 3]> = SmallVec::new();
        for arg in &it.args {
            let value = self.eval(arg)?;
            args.push(value);
        }
        self.charge(budget::SELECT + 1)?;
        let Value::Map(Map::Made(mut entries)) = self.take(it.slot)? else { return Err(Error::no_such_overload()) };
        insert_into(Arc::make_mut(&mut entries), &args)?;
        Ok(Value::Map(Map::Made(entries)))
    }

    #[inline(never)]
    fn bind(&mut self, it: &'a Bind) -> Evaluated<'a> {
        let value = self.eval(&it.value);
        if let Err(error) = &value
            && error.is_final()
        {
            return value;
        }
        self.slots[it.slot] = value;
        self.eval(&it.result)
    }

    #[inline(never)]
    fn fold(&mut self, it: &'a Fold) -> Evaluated<'a> {
        let range = self.eval(&it.range)?;
        self.slots[it.accumulator] = self.eval(&it.init);
        match &range {
            Value::List(list) => {
                for at in 0..list.len() {
                    let Some(item) = list.get(at) else { break };
                    if !self.turn(it, Value::from(at), Some(item))? {
                        break;
                    }
                }
            }
            Value::Map(map) => {
                for key in map.keys() {
                    let value = if it.variable2.is_some() { map.get(&key) } else { None };
                    let key = key.into_value();
                    let goes_on = match value {
                        Some(value) => self.turn(it, key, Some(value))?,
                        None => self.turn(it, key, None)?,
                    };
                    if !goes_on {
                        break;
                    }
                }
            }
            other => return Err(Error::other(format!("got '{}', expected iterable type", other.type_name()))),
        }
        self.eval(&it.result)
    }

    /// One time through the loop; is there another?
    fn turn(&mut self, it: &'a Fold, key: Value<'a>, value: Option<Value<'a>>) -> Result<bool, Box<Error>> {
        match (it.variable2, value) {
            (Some(second), Some(value)) => {
                self.slots[it.variable] = Ok(key);
                self.slots[second] = Ok(value);
            }
            (_, Some(value)) => self.slots[it.variable] = Ok(value),
            (_, None) => self.slots[it.variable] = Ok(key),
        }
        match self.eval(&it.condition) {
            Ok(Value::Bool(false)) => return Ok(false),
            Err(error) if error.is_final() => return Err(error),
            _ => {}
        }
        if !fuel::spend(1) {
            return Err(Error::interrupted());
        }
        let step = self.eval(&it.step);
        if let Err(error) = &step
            && error.is_final()
        {
            return step.map(|_| false);
        }
        self.slots[it.accumulator] = step;
        Ok(true)
    }
}

/// A value that is written with `?` may be absent.
fn present<'a>(value: Value<'a>, is_optional: bool) -> Result<Option<Value<'a>>, Box<Error>> {
    if !is_optional {
        return Ok(Some(value));
    }
    match value {
        Value::Optional(inner) => Ok(inner.map(|it| (*it).clone())),
        other => Err(not_optional(&other)),
    }
}

fn not_optional(value: &Value<'_>) -> Box<Error> {
    Error::other(format!("cannot initialize optional list element from non-optional value {}", value.type_name()))
}

fn no_such_overload(function: &str, args: &[Value<'_>]) -> Box<Error> {
    let types: Vec<&str> = args.iter().map(Value::type_name).collect();
    let mut error = Error::no_such_overload();
    error.message = format!("no such overload: {function}({})", types.join(", "));
    error
}

/// What was done without fuel is not right.
fn interrupted(result: Evaluated<'_>) -> Evaluated<'_> {
    if fuel::is_spent() { Err(Error::interrupted()) } else { result }
}
