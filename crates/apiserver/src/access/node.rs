//! What a node may see of secrets and config maps: single ones, by name.
//!
//! A rule can allow a `list` or a `watch` of everything or of nothing. The role of nodes allows neither, only `get`; a list
//! or watch of one name shows no more than that, so it is asked for as one. Which names are a node's business is not
//! looked at yet.

use super::{Attributes, Target};

const NODES: &str = "system:nodes";

/// The `get` that a node's question comes down to, if it does.
pub(super) fn as_get<'a>(question: &Attributes<'a>) -> Option<Attributes<'a>> {
    let Target::Resource { group: "", resource: "secrets" | "configmaps", subresource: "", namespace, name } =
        question.target
    else {
        return None;
    };
    let is_node = question.groups.iter().any(|it| it == NODES);
    let is_single = matches!(question.verb, "list" | "watch") && !namespace.is_empty() && !name.is_empty();
    (is_node && is_single).then_some(Attributes { verb: "get", ..*question })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_single_objects_and_only_for_nodes() {
        for (groups, verb, resource, namespace, name, expected) in [
            ([NODES], "watch", "secrets", "a", "s", true),
            ([NODES], "list", "configmaps", "a", "c", true),
            ([NODES], "list", "secrets", "a", "", false),
            ([NODES], "list", "secrets", "", "s", false),
            ([NODES], "delete", "secrets", "a", "s", false),
            ([NODES], "list", "pods", "a", "p", false),
            (["dev"], "list", "secrets", "a", "s", false),
        ] {
            let groups = groups.map(str::to_owned);
            let target = Target::Resource { group: "", resource, subresource: "", namespace, name };
            let question = Attributes { user: "system:node:n1", groups: &groups, verb, target };
            let found = as_get(&question).map(|it| it.verb);
            assert_eq!(found, expected.then_some("get"), "{verb} {resource} {namespace}/{name}");
        }
    }
}
