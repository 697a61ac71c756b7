//! What a custom resource is called.

use corten_meta::field;
use corten_schema::Cursor;

pub(super) fn validate(names: Cursor<'_>) {
    for name in ["plural", "singular"]
        .map(|it| names.at(it))
        .into_iter()
        .chain(names.list("shortNames"))
        .chain(names.list("categories"))
    {
        let reasons = field::dns1035_label(name.str());
        if !name.is_empty() && !reasons.is_empty() {
            name.invalid(&reasons.join(","));
        }
    }
    for kind in ["kind", "listKind"].map(|it| names.at(it)) {
        let reasons = field::dns1035_label(&kind.str().to_lowercase());
        if !kind.is_empty() && !reasons.is_empty() {
            kind.invalid(&format!("may have mixed case, but should otherwise match: {}", reasons.join(",")));
        }
    }
    let (kind, list) = (names.at("kind"), names.at("listKind"));
    if !kind.is_empty() && kind.str() == list.str() {
        list.invalid("kind and listKind may not be the same");
    }
}
