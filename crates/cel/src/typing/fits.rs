//! Does a type fit another, and what do the type variables become by that? The rules are cel-go's, null's included.

use std::sync::Arc;

use crate::declared::Type;

/// What each type variable has become.
#[derive(Debug, Default)]
pub(super) struct Mapping {
    vars: Vec<Option<Type>>,
}

/// How deep types are compared: deeper ones count as fitting.
const DEPTH_MAX: u16 = 100;

impl Mapping {
    pub(super) fn fresh(&mut self) -> Type {
        self.vars.push(None);
        Type::Var(u32::try_from(self.vars.len() - 1).unwrap_or(u32::MAX))
    }

    fn find(&self, var: u32) -> Option<&Type> {
        self.vars.get(var as usize)?.as_ref()
    }

    fn set(&mut self, var: u32, to: Type) {
        if let Some(place) = self.vars.get_mut(var as usize) {
            *place = Some(to);
        }
    }

    /// Do all of them fit? If not, nothing is remembered.
    pub(super) fn all_fit(&mut self, types: &[Type], params: &[Type]) -> bool {
        if types.len() != params.len() {
            return false;
        }
        let has_vars = params.iter().chain(types).any(mentions_var);
        let before = if has_vars { Some(self.vars.clone()) } else { None };
        let fit = types.iter().zip(params).all(|(it, param)| self.try_fit(it, param, 0));
        if !fit && let Some(before) = before {
            self.vars = before;
        }
        fit
    }

    pub(super) fn fits(&mut self, one: &Type, other: &Type) -> bool {
        self.all_fit(std::slice::from_ref(one), std::slice::from_ref(other))
    }

    fn try_fit(&mut self, one: &Type, other: &Type, depth: u16) -> bool {
        if depth > DEPTH_MAX {
            return true;
        }
        if let Type::Var(var) = *other {
            let (is_valid, is_known) = self.substitute_fits(one, var, depth);
            if is_known {
                return is_valid;
            }
        }
        if let Type::Var(var) = *one {
            return self.substitute_fits(other, var, depth).0;
        }
        if one.is_dyn_or_error() || other.is_dyn_or_error() {
            return true;
        }
        match (one, other) {
            (Type::Null, it) | (it, Type::Null) => takes_null(it),
            (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => self.try_fit(a, b, depth + 1),
            (Type::Map(a), Type::Map(b)) => self.try_fit(&a.0, &b.0, depth + 1) && self.try_fit(&a.1, &b.1, depth + 1),
            (Type::Type(_), Type::Type(_)) => true,
            _ => one.is_exactly(other),
        }
    }

    /// May the variable be this type? Is the variable's meaning known by now?
    fn substitute_fits(&mut self, one: &Type, var: u32, depth: u16) -> (bool, bool) {
        if matches!(one, Type::Var(it) if *it == var) {
            return (true, true);
        }
        if let Some(known) = self.find(var).cloned() {
            if one.is_exactly(&known) {
                return (true, true);
            }
            if !self.try_fit(one, &known, depth + 1) {
                return (false, true);
            }
            let general = most_general(one, &known).clone();
            if !self.mentions(var, &general, depth) {
                self.set(var, general);
            }
            return (true, true);
        }
        if self.mentions(var, one, depth) {
            return (false, false);
        }
        self.set(var, one.clone());
        (true, true)
    }

    /// Is the variable somewhere in the type?
    fn mentions(&self, var: u32, within: &Type, depth: u16) -> bool {
        if depth > DEPTH_MAX {
            return true;
        }
        match within {
            Type::Var(it) => *it == var || self.find(*it).is_some_and(|it| self.mentions(var, it, depth + 1)),
            Type::List(of) | Type::Optional(of) | Type::Type(of) => self.mentions(var, of, depth + 1),
            Type::Map(of) => self.mentions(var, &of.0, depth + 1) || self.mentions(var, &of.1, depth + 1),
            _ => false,
        }
    }

    /// The type with what its variables have become; one that has become nothing stays, or is dyn.
    pub(super) fn resolved(&self, of: &Type, free_is_dyn: bool) -> Type {
        self.resolve(of, free_is_dyn, 0)
    }

    fn resolve(&self, of: &Type, free_is_dyn: bool, depth: u16) -> Type {
        if depth > DEPTH_MAX {
            return Type::Dyn;
        }
        let inner = |it: &Arc<Type>| Arc::new(self.resolve(it, free_is_dyn, depth + 1));
        match of {
            Type::Var(var) => match self.find(*var) {
                Some(known) => self.resolve(known, free_is_dyn, depth + 1),
                None if free_is_dyn => Type::Dyn,
                None => of.clone(),
            },
            Type::List(it) if mentions_var(it) => Type::List(inner(it)),
            Type::Optional(it) if mentions_var(it) => Type::Optional(inner(it)),
            Type::Type(it) if mentions_var(it) => Type::Type(inner(it)),
            Type::Map(it) if mentions_var(&it.0) || mentions_var(&it.1) => {
                Type::map(self.resolve(&it.0, free_is_dyn, depth + 1), self.resolve(&it.1, free_is_dyn, depth + 1))
            }
            other => other.clone(),
        }
    }
}

fn mentions_var(of: &Type) -> bool {
    match of {
        Type::Var(_) => true,
        Type::List(it) | Type::Optional(it) | Type::Type(it) => mentions_var(it),
        Type::Map(it) => mentions_var(&it.0) || mentions_var(&it.1),
        _ => false,
    }
}

/// Null is taken by what has always taken it.
fn takes_null(of: &Type) -> bool {
    matches!(of, Type::Null | Type::Object(_) | Type::Open(_) | Type::Opaque(_) | Type::Duration | Type::Timestamp)
}

pub(super) fn most_general<'t>(one: &'t Type, other: &'t Type) -> &'t Type {
    if is_less_or_equally_specific(one, other) { one } else { other }
}

fn is_less_or_equally_specific(one: &Type, other: &Type) -> bool {
    match (one, other) {
        (Type::Dyn | Type::Var(_), _) | (Type::Type(_), Type::Type(_)) => true,
        (_, Type::Dyn | Type::Var(_)) => false,
        (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => is_less_or_equally_specific(a, b),
        (Type::Map(a), Type::Map(b)) => {
            is_less_or_equally_specific(&a.0, &b.0) && is_less_or_equally_specific(&a.1, &b.1)
        }
        _ => one.is_exactly(other),
    }
}
