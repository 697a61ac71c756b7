//! From a text to what runs: read, checked, estimated, planned.

use crate::{
    declared::Type,
    env::Env,
    error::{Issue, Issues},
    estimate::{self, Range},
    fuel,
    run::Program,
    syntax::{
        self,
        ast::{Expr, Kind, Literal},
    },
    typing::checker::{self, Types},
};

const FUEL_OF_NODE: u64 = 100;

impl Env {
    /// Reads and checks an expression.
    ///
    /// # Errors
    /// What is wrong with it, in upstream's words.
    pub fn check(&self, source: &str) -> Result<Checked<'_>, Issues> {
        let parsed = syntax::parse(source, self.macros())?;
        // To check and to estimate a node takes about a microsecond.
        if !fuel::spend(parsed.places.len() as u64 * FUEL_OF_NODE) {
            let message = "the expressions take more work to check than those of one object may".to_owned();
            return Err(Issues::new(source, vec![Issue { at: None, message }]));
        }
        let mut root = parsed.root;
        let types = checker::check(self, source, &mut root, &parsed.places)?;
        Ok(Checked { env: self, root, types })
    }

    /// Reads, checks and plans an expression.
    ///
    /// # Errors
    /// What is wrong with it, in upstream's words.
    pub fn compile(&self, source: &str) -> Result<Program, Issues> {
        let checked = self.check(source)?;
        Ok(checked.program())
    }
}

/// An expression that is right.
#[derive(Debug)]
pub struct Checked<'e> {
    env: &'e Env,
    root: Expr,
    types: Types,
}

impl Checked<'_> {
    /// What it evaluates to.
    pub fn result_type(&self) -> Type {
        self.types.of(&self.root).clone()
    }

    /// Does it read this field of this variable by name: `variable.field`, `has(variable.field)` or `variable.?field`?
    pub fn selects(&self, variable: &str, field: &str) -> bool {
        selects(&self.root, variable, field)
    }

    /// What it costs at least and at most, by what is declared of sizes.
    pub fn estimate(&self) -> Range {
        estimate::estimate(self.env, &self.root, &self.types)
    }

    /// What runs.
    pub fn program(&self) -> Program {
        Program::new(&self.root, &self.types, self.env)
    }
}

fn selects(expr: &Expr, variable: &str, field: &str) -> bool {
    let is_variable = |it: &Expr| matches!(&it.kind, Kind::Ident(name) if **name == *variable);
    let within = |it: &Expr| selects(it, variable, field);
    match &expr.kind {
        Kind::Literal(_) | Kind::Ident(_) => false,
        Kind::Select(it) => (*it.field == *field && is_variable(&it.operand)) || within(&it.operand),
        Kind::Call(it) => {
            let is_optional_select = matches!((&*it.function, &*it.args), ("_?._", [of, name])
                if is_variable(of) && matches!(&name.kind, Kind::Literal(Literal::String(name)) if **name == *field));
            is_optional_select || it.target.iter().chain(&it.args).any(within)
        }
        Kind::List(it) => it.elements.iter().any(within),
        Kind::Map(entries) => entries.iter().any(|it| within(&it.key) || within(&it.value)),
        Kind::Struct(it) => it.fields.iter().any(|it| within(&it.value)),
        Kind::Fold(it) => [&it.range, &it.init, &it.condition, &it.step, &it.result].into_iter().any(within),
    }
}
