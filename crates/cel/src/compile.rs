//! From a text to what runs: read, checked, estimated, planned.

use crate::{
    declared::Type,
    env::Env,
    error::Issues,
    estimate::{self, Range},
    run::Program,
    syntax::{self, ast::Expr},
    typing::checker::{self, Types},
};

impl Env {
    /// Reads and checks an expression.
    ///
    /// # Errors
    /// What is wrong with it, in upstream's words.
    pub fn check(&self, source: &str) -> Result<Checked<'_>, Issues> {
        let parsed = syntax::parse(source, self.macros())?;
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

    /// What it costs at least and at most, by what is declared of sizes.
    pub fn estimate(&self) -> Range {
        estimate::estimate(self.env, &self.root, &self.types)
    }

    /// What runs.
    pub fn program(&self) -> Program {
        Program::new(&self.root, &self.types, self.env)
    }
}
