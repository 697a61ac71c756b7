//! What an expression costs at least and at most, before it runs: cel-go's estimate, with Kubernetes' costs of functions.
//!
//! Sizes come from declared types. What is not known is as large as can be, and sums stay there.

mod functions;
mod range;

use std::{collections::BTreeMap, sync::Arc};

pub use range::Range;

use crate::{
    budget,
    declared::{DeclType, KEY, Shape, Type},
    env::Env,
    syntax::ast::{Call, Expr, Fold, Id, Kind, Literal},
    typing::checker::Types,
    value::chars,
};

pub(crate) fn estimate(env: &Env, root: &Expr, types: &Types) -> Range {
    let mut estimator = Estimator {
        env,
        types,
        declared: BTreeMap::new(),
        sizes: BTreeMap::new(),
        entries: BTreeMap::new(),
        locals: Vec::new(),
    };
    estimator.cost(root)
}

struct Estimator<'e> {
    env: &'e Env,
    types: &'e Types,
    /// What a path through declared types leads to, by node.
    declared: BTreeMap<Id, &'e DeclType>,
    sizes: BTreeMap<Id, Range>,
    entries: BTreeMap<Id, Entries>,
    locals: Vec<Local<'e>>,
}

/// Of the entries of a list or map: the sizes of their keys and values.
#[derive(Clone, Copy, Debug)]
struct Entries {
    is_list: bool,
    key: Range,
    value: Range,
}

#[derive(Clone, Debug)]
struct Local<'e> {
    name: Arc<str>,
    declared: Option<&'e DeclType>,
    size: Option<Range>,
    entries: Option<Entries>,
}

/// What the cost of a call asks of its target and arguments.
struct Node<'e, 'x> {
    of: &'x Type,
    expr: &'x Expr,
    declared: Option<&'e DeclType>,
    size: Option<Range>,
}

impl<'e> Estimator<'e> {
    fn cost(&mut self, expr: &Expr) -> Range {
        match &expr.kind {
            Kind::Literal(_) => Range::fixed(0),
            Kind::Ident(name) => {
                let declared = match self.local(name) {
                    Some(local) => local.declared,
                    None => self.env.declared(name),
                };
                self.lead(expr.id, declared);
                Range::fixed(budget::SELECT)
            }
            Kind::Select(select) => {
                let sum = self.cost(&select.operand);
                if select.is_test {
                    return sum;
                }
                let of = self.types.of(&select.operand);
                let declared = self.path(&select.operand).and_then(|it| match it.object_decl() {
                    Some(object) => object.fields.get(&*select.field).map(|it| &it.of),
                    None => it.inner().filter(|it| self.env.sizes_entries() && matches!(it.shape, Shape::Dyn)),
                });
                self.lead(expr.id, declared);
                let has_cost = matches!(of, Type::Map(_) | Type::Object(_) | Type::Open(_) | Type::Var(_));
                if has_cost { sum + Range::fixed(budget::SELECT) } else { sum }
            }
            Kind::Call(call) => self.call(expr, call),
            Kind::List(list) => {
                let mut sum = Range::fixed(budget::LIST);
                let mut item: Option<Range> = None;
                for it in &list.elements {
                    sum = sum + self.cost(it);
                    let size = self.size_or_unknown(it);
                    item = Some(item.map_or(size, |it| it.or(size)));
                }
                let value = item.unwrap_or(Range::fixed(0));
                self.entries.insert(expr.id, Entries { is_list: true, key: Range::fixed(1), value });
                sum
            }
            Kind::Map(entries) => {
                let mut sum = Range::fixed(budget::MAP);
                let mut both: Option<(Range, Range)> = None;
                for it in entries {
                    sum = sum + self.cost(&it.key) + self.cost(&it.value);
                    let (key, value) = (self.size_or_unknown(&it.key), self.size_or_unknown(&it.value));
                    both = Some(both.map_or((key, value), |it| (it.0.or(key), it.1.or(value))));
                }
                let (key, value) = both.unwrap_or((Range::fixed(0), Range::fixed(0)));
                self.entries.insert(expr.id, Entries { is_list: false, key, value });
                sum
            }
            Kind::Struct(it) => {
                it.fields.iter().fold(Range::fixed(budget::STRUCT), |sum, it| sum + self.cost(&it.value))
            }
            Kind::Fold(fold) if fold.is_bind() => self.bind(expr, fold),
            Kind::Fold(fold) => self.fold(expr, fold),
        }
    }

    fn local(&self, name: &str) -> Option<&Local<'e>> {
        self.locals.iter().rev().find(|it| &*it.name == name)
    }

    fn lead(&mut self, id: Id, declared: Option<&'e DeclType>) {
        // What no schema declares has no size there.
        if let Some(declared) = declared.filter(|it| !matches!(it.shape, Shape::Other(_))) {
            self.declared.insert(id, declared);
        }
    }

    fn path(&self, expr: &Expr) -> Option<&'e DeclType> {
        if let Kind::Ident(name) = &expr.kind
            && let Some(local) = self.local(name)
        {
            return local.declared;
        }
        self.declared.get(&expr.id).copied()
    }

    fn call(&mut self, expr: &Expr, call: &Call) -> Range {
        if &*call.function == "dyn" && call.args.len() == 1 {
            let arg = &call.args[0];
            let cost = self.cost(arg) + Range::fixed(1);
            self.copy_sizes(expr, arg);
            return cost;
        }
        let costs: Vec<Range> = call.args.iter().map(|it| self.cost(it)).collect();
        let overloads = self.types.overloads(expr.id);
        let ids: Vec<&str> = match &*call.function {
            "_?._" => vec!["select_optional_field"],
            _ => overloads.iter().map(|it| it.id).collect(),
        };
        if ids.is_empty() {
            return Range::fixed(0);
        }
        let sum = call.target.as_ref().map_or(Range::fixed(0), |it| self.cost(it));
        let (mut cost, mut size): (Option<Range>, Option<Range>) = (None, None);
        for id in ids {
            let (of_overload, result) = self.function(expr, call, id, &costs);
            cost = Some(cost.map_or(of_overload, |it| it.or(of_overload)));
            if let Some(result) = result {
                size = Some(size.map_or(result, |it| it.or(result)));
            }
            if matches!(id, "index_list" | "index_map") {
                size = self.entries_of(&call.args[0]).map(|it| it.value);
                let declared = self.path(&call.args[0]).and_then(DeclType::inner);
                self.lead(expr.id, declared);
            }
            if size.is_none() {
                size = self.size(expr);
            }
        }
        if let Some(size) = size {
            self.sizes.insert(expr.id, size);
        }
        sum + cost.unwrap_or(Range::fixed(0))
    }

    fn bind(&mut self, expr: &Expr, fold: &Fold) -> Range {
        let sum = self.cost(&fold.range) + self.cost(&fold.init);
        self.push_value(&fold.accumulator, &fold.init);
        let sum = sum + self.cost(&fold.result);
        self.locals.pop();
        self.copy_sizes(expr, &fold.result);
        sum
    }

    fn fold(&mut self, expr: &Expr, fold: &Fold) -> Range {
        let sum = self.cost(&fold.range) + self.cost(&fold.init);
        let depth = self.locals.len();
        self.push_value(&fold.accumulator, &fold.init);
        let entries = self.entries_of(&fold.range);
        let is_list = entries.map_or(matches!(self.types.of(&fold.range), Type::List(_)), |it| it.is_list);
        let path = self.path(&fold.range);
        let key = Local {
            name: fold.variable.clone(),
            declared: path.filter(|_| !is_list).map(|_| &*KEY),
            size: entries.map(|it| it.key),
            entries: None,
        };
        let value = |name: &Arc<str>| Local {
            name: name.clone(),
            declared: path.and_then(DeclType::inner),
            size: entries.map(|it| it.value),
            entries: None,
        };
        match &fold.variable2 {
            Some(second) => self.locals.extend([key, value(second)]),
            None if is_list => self.locals.push(value(&fold.variable)),
            None => self.locals.push(key),
        }
        let each = self.cost(&fold.condition) + self.cost(&fold.step);
        self.locals.truncate(depth + 1);
        let sum = sum + self.cost(&fold.result);
        self.locals.truncate(depth);
        let count = self.size_or_unknown(&fold.range);
        match &fold.init.kind {
            Kind::Literal(_) => {
                if let Some(size) = self.size(&fold.init) {
                    self.sizes.insert(expr.id, size);
                }
            }
            Kind::List(_) | Kind::Map(_) => {
                self.sizes.insert(expr.id, count);
                if let Some(entries) = self.entries_of(&fold.step) {
                    self.entries.insert(expr.id, entries);
                }
            }
            _ => {}
        }
        sum + count * each
    }

    /// A local variable that is what an expression is.
    fn push_value(&mut self, name: &Arc<str>, of: &Expr) {
        let local =
            Local { name: name.clone(), declared: self.path(of), size: self.size(of), entries: self.entries_of(of) };
        self.locals.push(local);
    }

    fn copy_sizes(&mut self, to: &Expr, from: &Expr) {
        if let Some(size) = self.size(from) {
            self.sizes.insert(to.id, size);
        }
        if let Some(entries) = self.entries_of(from) {
            self.entries.insert(to.id, entries);
        }
    }

    fn entries_of(&self, expr: &Expr) -> Option<Entries> {
        if let Some(known) = self.entries.get(&expr.id) {
            return Some(*known);
        }
        match &expr.kind {
            Kind::Ident(name) => self.local(name)?.entries,
            _ => None,
        }
    }

    fn size(&mut self, expr: &Expr) -> Option<Range> {
        if let Some(known) = self.sizes.get(&expr.id) {
            return Some(*known);
        }
        if let Some(size) = written_size(expr) {
            return Some(Range::fixed(size));
        }
        if let Some(declared) = self.path(expr) {
            let size = Range::new(0, declared.max_elements);
            self.sizes.insert(expr.id, size);
            return Some(size);
        }
        if self.types.of(expr).is_scalar() {
            return Some(Range::fixed(1));
        }
        match &expr.kind {
            Kind::Ident(name) => self.local(name)?.size,
            _ => None,
        }
    }

    fn size_or_unknown(&mut self, expr: &Expr) -> Range {
        self.size(expr).unwrap_or(Range::UNKNOWN)
    }

    fn node<'x>(&mut self, expr: &'x Expr) -> Node<'e, 'x>
    where
        'e: 'x,
    {
        let declared = self.path(expr);
        Node { of: self.types.of(expr), expr, declared, size: self.size(expr) }
    }
}

/// The size of what is written out.
fn written_size(expr: &Expr) -> Option<u64> {
    Some(match &expr.kind {
        Kind::Literal(Literal::String(text)) => chars(text),
        Kind::Literal(Literal::Bytes(bytes)) => bytes.len() as u64,
        Kind::Literal(_) => 1,
        Kind::List(list) => list.elements.len() as u64,
        Kind::Map(entries) => entries.len() as u64,
        _ => return None,
    })
}
