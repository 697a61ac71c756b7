//! The values that expressions of a webhook or a policy are given.

use corten_cel::{Activation, Attributes, Authorizer, Program, Value as Cel};
use corten_validation::admission_expressions::NAMESPACE;
use serde_json::Value;

/// What is to be shown to expressions. What none of them names may be left out: see [`Uses`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Bindings<'a> {
    pub object: Option<&'a Value>,
    pub old: Option<&'a Value>,
    /// The admission request, without its objects.
    pub request: Option<&'a Value>,
    /// The namespace's object.
    pub namespace: Option<&'a Value>,
    pub params: Option<&'a Value>,
    /// Who answers, and what `authorizer.requestResource` asks about.
    pub authorizer: Option<(&'a dyn Authorizer, &'a Attributes)>,
}

impl<'a> Bindings<'a> {
    pub fn activation(&self) -> Activation<'a> {
        let json = |it: Option<&'a Value>| it.map_or(Cel::Null, Cel::from_json);
        let namespace = self.namespace.map_or(Cel::Null, |it| Cel::declared(it, &NAMESPACE));
        let activation = Activation::new()
            .with("object", json(self.object))
            .with("oldObject", json(self.old))
            .with("request", json(self.request))
            .with("namespaceObject", namespace)
            .with("params", json(self.params));
        match self.authorizer {
            None => activation,
            Some((by, asked)) => activation
                .with("authorizer", Cel::authorizer(by))
                .with("authorizer.requestResource", Cel::resource_authorizer(by, asked.clone())),
        }
    }
}

/// Which values expressions name that cost something to make.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uses {
    pub request: bool,
    pub namespace: bool,
    pub authorizer: bool,
}

impl Uses {
    pub fn of(program: &Program) -> Self {
        Self {
            request: program.uses("request"),
            namespace: program.uses("namespaceObject"),
            authorizer: program.uses("authorizer") || program.uses("authorizer.requestResource"),
        }
    }

    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            request: self.request | other.request,
            namespace: self.namespace | other.namespace,
            authorizer: self.authorizer | other.authorizer,
        }
    }
}
