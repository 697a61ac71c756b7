//! Gives every node of a tree its type, every call its overloads, or says what is wrong. The rules are cel-go's.

use std::sync::Arc;

use super::fits::{Mapping, most_general};
use crate::{
    declared::Type,
    env::Env,
    error::{Issue, Issues},
    functions::{self, Overload},
    syntax::ast::{Call, Expr, Fold, Id, Kind, Literal, Select, Struct},
};

/// What the check found out about the nodes, by their numbers.
#[derive(Debug)]
pub(crate) struct Types {
    types: Vec<Option<Type>>,
    overloads: Vec<Vec<&'static Overload>>,
}

impl Types {
    pub(crate) fn of(&self, expr: &Expr) -> &Type {
        self.types.get(expr.id as usize).and_then(Option::as_ref).unwrap_or(&Type::Dyn)
    }

    pub(crate) fn overloads(&self, id: Id) -> &[&'static Overload] {
        self.overloads.get(id as usize).map_or(&[], Vec::as_slice)
    }
}

/// # Errors
/// Every complaint about types and names.
pub(crate) fn check(env: &Env, source: &str, root: &mut Expr, places: &[u32]) -> Result<Types, Issues> {
    let types = Types { types: vec![None; places.len()], overloads: vec![Vec::new(); places.len()] };
    let mut checker =
        Checker { env, places, types, mapping: Mapping::default(), scopes: Vec::new(), issues: Vec::new() };
    checker.check(root);
    let Checker { mut types, mapping, mut issues, .. } = checker;
    for it in types.types.iter_mut().flatten() {
        *it = mapping.resolved(it, true);
    }
    if issues.is_empty() {
        let mut complain = |id: Id, message| {
            issues.push(Issue { at: places.get(id as usize).map(|it| *it as usize), message });
        };
        super::literals::check(root, &types, env.mixes(), &mut complain);
        if env.reads_patterns() {
            super::patterns::check(root, &mut complain);
        }
    }
    if issues.is_empty() { Ok(types) } else { Err(Issues::new(source, issues)) }
}

struct Checker<'e> {
    env: &'e Env,
    places: &'e [u32],
    types: Types,
    mapping: Mapping,
    /// Variables of folds, the innermost last.
    scopes: Vec<(Arc<str>, Type)>,
    issues: Vec<Issue>,
}

impl Checker<'_> {
    fn complain(&mut self, id: Id, message: String) {
        self.issues.push(Issue { at: self.places.get(id as usize).map(|it| *it as usize), message });
    }

    fn undeclared(&mut self, id: Id, name: &str) {
        self.complain(id, format!("undeclared reference to '{name}' (in container '')"));
    }

    fn set(&mut self, id: Id, of: Type) {
        self.types.types[id as usize] = Some(of);
    }

    fn get(&self, expr: &Expr) -> Type {
        self.types.of(expr).clone()
    }

    fn check(&mut self, expr: &mut Expr) {
        let id = expr.id;
        match &mut expr.kind {
            Kind::Literal(literal) => {
                let of = of_literal(literal);
                self.set(id, of);
            }
            Kind::Ident(_) => self.ident(expr),
            Kind::Select(_) => self.select(expr),
            Kind::Call(_) => self.call(expr),
            Kind::List(list) => {
                let mut element = None;
                for (at, it) in list.elements.iter_mut().enumerate() {
                    self.check(it);
                    let of = self.unwrapped(it, list.optional.contains(&at));
                    element = Some(self.joined(it.id, element, of));
                }
                let element = element.unwrap_or_else(|| self.mapping.fresh());
                self.set(id, Type::list(element));
            }
            Kind::Map(entries) => {
                let (mut key, mut value) = (None, None);
                for entry in entries.iter_mut() {
                    self.check(&mut entry.key);
                    let of = self.get(&entry.key);
                    key = Some(self.joined(entry.key.id, key, of));
                    self.check(&mut entry.value);
                    let of = self.unwrapped(&entry.value, entry.is_optional);
                    value = Some(self.joined(entry.value.id, value, of));
                }
                let key = key.unwrap_or_else(|| self.mapping.fresh());
                let value = value.unwrap_or_else(|| self.mapping.fresh());
                self.set(id, Type::map(key, value));
            }
            Kind::Struct(it) => {
                let of = self.structure(id, it);
                self.set(id, of);
            }
            Kind::Fold(fold) => {
                let of = self.fold(fold);
                self.set(id, of);
            }
        }
    }

    /// What is in an optional element; a complaint if it is none.
    fn unwrapped(&mut self, expr: &Expr, is_optional: bool) -> Type {
        let of = self.get(expr);
        if !is_optional {
            return of;
        }
        match self.mapping.resolved(&of, false) {
            Type::Optional(inner) => (*inner).clone(),
            other => {
                if !matches!(other, Type::Dyn | Type::Error) {
                    let expected = Type::optional(other.clone());
                    self.complain(expr.id, format!("expected type '{expected}' but found '{other}'"));
                }
                other
            }
        }
    }

    fn joined(&mut self, id: Id, before: Option<Type>, now: Type) -> Type {
        let Some(before) = before else { return now };
        if self.mapping.fits(&before, &now) {
            return most_general(&before, &now).clone();
        }
        if self.env.mixes() {
            return Type::Dyn;
        }
        let (expected, found) = (self.mapping.resolved(&before, true), self.mapping.resolved(&now, true));
        self.complain(id, format!("expected type '{expected}' but found '{found}'"));
        Type::Error
    }

    fn local(&self, name: &str) -> Option<Type> {
        self.scopes.iter().rev().find(|it| *it.0 == *name).map(|it| it.1.clone())
    }

    fn ident(&mut self, expr: &mut Expr) {
        let Kind::Ident(name) = &expr.kind else { return };
        let (name, id) = (name.clone(), expr.id);
        if let Some(of) = self.local(&name) {
            return self.set(id, of);
        }
        let global = name.strip_prefix('.').unwrap_or(&name);
        if let Some(of) = self.env.ident(global) {
            if global.len() != name.len() && self.local(global).is_none() {
                expr.kind = Kind::Ident(global.into());
            }
            return self.set(id, of);
        }
        self.set(id, Type::Error);
        self.undeclared(id, &name);
    }

    fn select(&mut self, expr: &mut Expr) {
        let id = expr.id;
        if expr.root().is_some_and(|it| self.local(it).is_none())
            && let Some(name) = expr.qualified()
            && let name = name.strip_prefix('.').unwrap_or(&name)
            && let Some(of) = self.env.ident(name)
        {
            expr.kind = Kind::Ident(name.into());
            return self.set(id, of);
        }
        let Kind::Select(select) = &mut expr.kind else { return };
        let Select { operand, field, is_test } = &mut **select;
        let of = self.field(id, operand, field, false);
        self.set(id, if *is_test { Type::Bool } else { of });
    }

    /// The type of a field of what `operand` is.
    fn field(&mut self, id: Id, operand: &mut Expr, field: &str, is_optional: bool) -> Type {
        self.check(operand);
        let of = self.mapping.resolved(self.types.of(operand), false);
        let (target, was_optional) = match of {
            Type::Optional(inner) => ((*inner).clone(), true),
            other => (other, false),
        };
        let field_type = match &target {
            Type::Map(of) => of.1.clone(),
            Type::Object(object) => match object.fields.get(field) {
                Some(declared) => declared.of.cel_type(),
                None => {
                    self.complain(id, format!("undefined field '{field}'"));
                    Type::Error
                }
            },
            Type::Var(_) => {
                self.mapping.fits(&Type::Dyn, &target);
                Type::Dyn
            }
            Type::Dyn | Type::Error | Type::Open(_) => Type::Dyn,
            other => {
                self.complain(id, format!("type '{other}' does not support field selection"));
                Type::Dyn
            }
        };
        if was_optional || is_optional { Type::optional(field_type) } else { field_type }
    }

    fn call(&mut self, expr: &mut Expr) {
        let id = expr.id;
        let Kind::Call(call) = &mut expr.kind else { return };
        let Call { function, target, args } = &mut **call;
        if &**function == "_?._" && target.is_none() && args.len() == 2 {
            let (operand, field) = args.split_at_mut(1);
            if let Kind::Literal(Literal::String(name)) = &field[0].kind {
                let name = name.clone();
                self.check(&mut field[0]);
                let of = self.field(id, &mut operand[0], &name, true);
                return self.set(id, of);
            }
        }
        for arg in args.iter_mut() {
            self.check(arg);
        }
        if let Some(receiver) = target {
            // `a.b.c()` may be the function `a.b.c`.
            if receiver.root().is_some_and(|it| self.local(it).is_none())
                && let Some(prefix) = receiver.qualified()
                && let Some(found) = self.env.function(&format!("{}.{function}", prefix.trim_start_matches('.')))
            {
                *target = None;
                *function = found.name.into();
                return self.resolve(id, found, None, args);
            }
            self.check(receiver);
        }
        let name = function.strip_prefix('.').unwrap_or(function);
        match self.env.function(name) {
            Some(found) => self.resolve(id, found, target.as_ref(), args),
            None => {
                self.set(id, Type::Error);
                let name = function.clone();
                self.undeclared(id, &name);
            }
        }
    }

    fn resolve(&mut self, id: Id, function: &'static functions::Function, target: Option<&Expr>, args: &[Expr]) {
        if matches!(function.name, "_&&_" | "_||_") {
            return self.logical(id, function, args);
        }
        let types: Vec<Type> = target.into_iter().chain(args).map(|it| self.get(it)).collect();
        let mut result: Option<Type> = None;
        let mut found = Vec::new();
        for overload in function.overloads.iter().filter(|it| it.is_member == target.is_some()) {
            if !self.env.has(overload) || overload.args.len() != types.len() {
                continue;
            }
            let (params, of) = self.instance(overload);
            if !self.mapping.all_fit(&types, &params) {
                continue;
            }
            found.push(overload);
            let of = self.mapping.resolved(&of, false);
            result = Some(match result {
                None => of,
                Some(before) if matches!(before, Type::Dyn) || before.is_exactly(&of) => before,
                Some(_) => Type::Dyn,
            });
        }
        match result {
            Some(of) => {
                self.set(id, of);
                self.types.overloads[id as usize] = found;
            }
            None => {
                let types: Vec<String> = types.iter().map(|it| self.mapping.resolved(it, true).to_string()).collect();
                let signature = match (target, types.split_first()) {
                    (Some(_), Some((receiver, rest))) => format!("{receiver}.({})", rest.join(", ")),
                    _ => format!("({})", types.join(", ")),
                };
                self.set(id, Type::Error);
                let name = function.name;
                self.complain(id, format!("found no matching overload for '{name}' applied to '{signature}'"));
            }
        }
    }

    fn logical(&mut self, id: Id, function: &'static functions::Function, args: &[Expr]) {
        let mut is_wrong = false;
        for arg in args {
            let of = self.get(arg);
            if !self.mapping.fits(&of, &Type::Bool) {
                is_wrong = true;
                let found = self.mapping.resolved(&of, true);
                self.complain(arg.id, format!("expected type 'bool' but found '{found}'"));
            }
        }
        self.set(id, if is_wrong { Type::Error } else { Type::Bool });
        self.types.overloads[id as usize] = function.overloads.iter().collect();
    }

    /// The overload's types with variables of their own.
    fn instance(&mut self, overload: &Overload) -> (Vec<Type>, Type) {
        if overload.n_params == 0 {
            return (overload.args.clone(), overload.result.clone());
        }
        let vars: Vec<Type> = (0..overload.n_params).map(|_| self.mapping.fresh()).collect();
        (overload.args.iter().map(|it| with(it, &vars)).collect(), with(&overload.result, &vars))
    }

    fn structure(&mut self, id: Id, it: &mut Struct) -> Type {
        let of = self.env.structure(&it.name);
        if of.is_none() {
            let name = it.name.clone();
            self.undeclared(id, &name);
        }
        for field in &mut it.fields {
            self.check(&mut field.value);
            let value = self.unwrapped(&field.value, field.is_optional);
            let expected = match &of {
                Some(Type::Object(object)) => match object.fields.get(&*field.name) {
                    Some(declared) => declared.of.cel_type(),
                    None => {
                        self.complain(field.id, format!("undefined field '{}'", field.name));
                        Type::Error
                    }
                },
                _ => Type::Dyn,
            };
            if !self.mapping.fits(&expected, &value) {
                let value = self.mapping.resolved(&value, true);
                let message =
                    format!("expected type of field '{}' is '{expected}' but provided type is '{value}'", field.name);
                self.complain(field.id, message);
            }
        }
        of.unwrap_or(Type::Error)
    }

    fn fold(&mut self, fold: &mut Fold) -> Type {
        self.check(&mut fold.range);
        self.check(&mut fold.init);
        let range = self.mapping.resolved(self.types.of(&fold.range), false);
        let accumulator = self.get(&fold.init);
        let depth = self.scopes.len();
        self.scopes.push((fold.accumulator.clone(), accumulator.clone()));
        let has_two = fold.variable2.is_some();
        let (first, second) = match &range {
            Type::List(of) if has_two => (Type::Int, (**of).clone()),
            Type::List(of) => ((**of).clone(), Type::Dyn),
            Type::Map(of) => (of.0.clone(), of.1.clone()),
            Type::Dyn | Type::Error => (Type::Dyn, Type::Dyn),
            Type::Var(_) => {
                self.mapping.fits(&Type::Dyn, &range);
                (Type::Dyn, Type::Dyn)
            }
            other => {
                let message = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.complain(fold.range.id, message);
                (Type::Error, Type::Error)
            }
        };
        self.scopes.push((fold.variable.clone(), first));
        if let Some(name) = &fold.variable2 {
            self.scopes.push((name.clone(), second));
        }
        self.check(&mut fold.condition);
        self.assert(&fold.condition, &Type::Bool);
        self.check(&mut fold.step);
        self.assert(&fold.step, &accumulator);
        self.scopes.truncate(depth + 1);
        self.check(&mut fold.result);
        self.scopes.truncate(depth);
        let of = self.get(&fold.result);
        self.mapping.resolved(&of, false)
    }

    fn assert(&mut self, expr: &Expr, expected: &Type) {
        let found = self.get(expr);
        if !self.mapping.fits(expected, &found) {
            let (expected, found) = (self.mapping.resolved(expected, true), self.mapping.resolved(&found, true));
            self.complain(expr.id, format!("expected type '{expected}' but found '{found}'"));
        }
    }
}

fn of_literal(literal: &Literal) -> Type {
    match literal {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) => Type::Int,
        Literal::Uint(_) => Type::Uint,
        Literal::Double(_) => Type::Double,
        Literal::String(_) => Type::String,
        Literal::Bytes(_) => Type::Bytes,
    }
}

/// The type with variables for its parameters.
fn with(of: &Type, vars: &[Type]) -> Type {
    match of {
        Type::Param(number) => vars.get(usize::from(*number)).cloned().unwrap_or(Type::Dyn),
        Type::List(it) => Type::list(with(it, vars)),
        Type::Optional(it) => Type::optional(with(it, vars)),
        Type::Type(it) => Type::of_type(with(it, vars)),
        Type::Map(it) => Type::map(with(&it.0, vars), with(&it.1, vars)),
        other => other.clone(),
    }
}
