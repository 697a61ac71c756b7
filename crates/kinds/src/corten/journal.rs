//! What every loop last decided about one object; never stored.

use corten_api::resources::JOURNALS;
use corten_validation::read::items;
use serde_json::json;

use crate::{BuiltIn, Policy, Verb, columns::column};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: JOURNALS,
    singular: "journal",
    short_names: &[],
    categories: &[],
    verbs: Verb::READ_ONLY,
    subresources: &[],
    schema: "dev.corten.v1.Journal",
    view_of: None,
    selectable_fields: &[],
    columns: &[column("Decided By", "The loops that have looked at the object.", |object, _| {
        let loops = items(object, "/decisions").iter().filter_map(|it| it["by"].as_str());
        json!(loops.collect::<Vec<_>>().join(","))
    })],
    policy: &Journal,
};

struct Journal;

impl Policy for Journal {
    fn has_generation(&self) -> bool {
        false
    }
}
