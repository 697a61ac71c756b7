//! Owners of parts of what has become one value since they wrote it: a definition says now that a list or map is `atomic`
//! (structured-merge-diff's `ReconcileFieldSetWithSchema`). Whoever owned a part owns the whole. That a whole has become parts is
//! left as it is, as there.

use super::{
    element::{Element, form_below},
    form::Form,
    set::Set,
};
use crate::described::Made;

impl Set<'_> {
    /// Is there anything below what is one value?
    pub(super) fn has_parts(&self, form: Form<'_>) -> bool {
        let mut below = self.0.iter().filter(|it| !it.below.is_empty());
        below.any(|it| is_whole(form, &it.element) || it.below.has_parts(form_below(form, &it.element)))
    }

    /// With the path of each such value in the place of all below it.
    pub(super) fn with_wholes(mut self, form: Form<'_>) -> Self {
        for node in self.0.iter_mut().filter(|it| !it.below.is_empty()) {
            let below = std::mem::take(&mut node.below);
            if is_whole(form, &node.element) {
                node.member = true;
            } else {
                node.below = below.with_wholes(form_below(form, &node.element));
            }
        }
        self
    }
}

/// A list or map that is replaced as one value, by its type. What no type describes may be anything.
fn is_whole(form: Form<'_>, element: &Element<'_>) -> bool {
    let described = match (form, element) {
        (Form::Struct(of), Element::Field(name)) => of.field(name).map(|it| it.described()),
        (Form::Map(of), Element::Field(_)) | (Form::Keyed(of, _), Element::Key(_)) => Some(of),
        _ => None,
    };
    let is_composite = |made: Made<'_>| matches!(made, Made::Struct(_) | Made::Map(_) | Made::List(_));
    described.is_some_and(|it| is_composite(it.made())) && matches!(form_below(form, element), Form::Leaf)
}
