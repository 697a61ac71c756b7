//! A schema in its parts.

use corten_schema::Cursor;

pub(super) const COMBINING: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// The parts that say what a value is made of, from the outside to the inside.
pub(super) fn structural<'a>(schema: Cursor<'a>, visit: &mut impl FnMut(Cursor<'a>)) {
    visit(schema);
    below(schema).for_each(|it| structural(it, visit));
}

/// The parts right below that say what a value is made of.
pub(super) fn below<'a>(schema: Cursor<'a>) -> impl Iterator<Item = Cursor<'a>> {
    let properties = schema.at("properties").entries().map(|(_, it)| it);
    let others = ["additionalProperties", "items"].into_iter().map(move |it| schema.at(it));
    properties.chain(others.filter(|it| it.map().is_some()))
}

/// The schemas that a part combines to rules about its values.
pub(super) fn combined<'a>(schema: Cursor<'a>) -> impl Iterator<Item = Cursor<'a>> {
    let not = Some(schema.at("not")).filter(|it| it.map().is_some());
    COMBINING.into_iter().flat_map(move |it| schema.list(it)).chain(not)
}

/// Every part, also those of combined rules.
pub(super) fn all<'a>(schema: Cursor<'a>, visit: &mut impl FnMut(Cursor<'a>)) {
    visit(schema);
    below(schema).for_each(|it| all(it, visit));
    combined(schema).for_each(|it| all(it, visit));
}
