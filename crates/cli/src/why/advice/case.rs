//! A cause with all that is known of it, and the advice that is made of it.

use std::rc::Rc;

use corten_reconcile::Wait;
use serde::Serialize;
use serde_json::Value;

use crate::why::{
    account::{Account, Root},
    command::kubectl,
    fields::{items, one_line, text},
    reader::Reader,
};
use corten_console::shell::quoted;

/// What to do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Advice {
    /// The cause in plain words; empty: the wait's own message says it.
    #[serde(skip)]
    pub(crate) headline: String,
    /// Who must act, in words.
    pub(crate) who: String,
    /// Facts that help, a line each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) hints: Vec<String>,
    /// The command to run next.
    pub(crate) next: String,
}

impl Advice {
    pub(super) fn run(next: String) -> Self {
        Self { next, ..Self::default() }
    }

    pub(super) fn headline(mut self, headline: impl Into<String>) -> Self {
        self.headline = headline.into();
        self
    }

    pub(super) fn who(mut self, who: impl Into<String>) -> Self {
        self.who = who.into();
        self
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    pub(super) fn hints(mut self, hints: impl IntoIterator<Item = String>) -> Self {
        self.hints.extend(hints);
        self
    }
}

/// The cause, the object it is about, and whoever that object was made for.
pub(super) struct Case<'a> {
    pub(super) reader: &'a Reader<'a>,
    pub(super) root: &'a Root<'a>,
    pub(super) wait: &'a Wait,
    pub(super) at: &'a Account,
    pub(super) object: &'a Value,
    pub(super) namespace: &'a str,
    /// Whose template must change: the Deployment of a Pod, or the object itself.
    pub(super) author: String,
    pub(super) author_object: Rc<Value>,
}

impl Case<'_> {
    pub(super) fn is_bare_pod(&self) -> bool {
        self.author.starts_with("pod/")
    }

    /// Opens what must be changed; a Pod itself can hardly be.
    pub(super) fn edit(&self) -> String {
        if self.is_bare_pod() {
            return kubectl(self.namespace, &["get", &self.author, "-o", "yaml"]);
        }
        kubectl(self.namespace, &["edit", &self.author])
    }

    pub(super) fn edit_hints(&self) -> Option<String> {
        self.is_bare_pod()
            .then(|| "a pod's spec cannot be changed: correct its manifest, delete it, make it again".into())
    }

    pub(super) fn describe(&self) -> String {
        kubectl(self.namespace, &["describe", &self.at.subject])
    }

    /// The part of the Pod's spec that is about the container of the root's step.
    pub(super) fn container(&self) -> Option<&Value> {
        let name = self.root.container()?;
        let lists = ["/spec/initContainers", "/spec/containers", "/spec/ephemeralContainers"];
        lists.iter().flat_map(|it| items(self.object, it)).find(|it| it["name"] == name)
    }

    pub(super) fn container_name(&self) -> &str {
        self.root.container().unwrap_or_default()
    }
}

/// `kubectl logs POD -c CONTAINER`, with as many options as say more.
pub(super) fn logs(case: &Case<'_>, container: &str, options: &[&str]) -> String {
    let name = text(case.object, "/metadata/name");
    let mut words = vec!["logs", name];
    if !container.is_empty() {
        words.extend(["-c", container]);
    }
    words.extend(options);
    kubectl(case.namespace, &words)
}

/// The end of a message: runtimes put the cause last and everything they were doing before.
pub(super) fn last_part(message: &str) -> String {
    one_line(message.rsplit(": ").next().unwrap_or(message))
}

pub(super) fn shell(text: &str) -> String {
    quoted(text)
}
