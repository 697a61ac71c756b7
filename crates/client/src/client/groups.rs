//! What a server says it serves, group by group, where it cannot say it in one answer: Kubernetes before v1.26.

use serde_json::{Value, json};

use super::{
    Client, List,
    discovery::{ServedGroup, ServedResource},
    encode,
};
use crate::Error;

/// Each group as aggregated discovery (`APIGroupDiscovery`) would have it. A version whose server does not answer is stale, and nothing is
/// said of it.
pub(super) async fn one_by_one(client: &Client) -> Result<List, Error> {
    let mut list = List::default();
    for ServedGroup { name, versions } in client.served_groups().await? {
        let mut described = Vec::new();
        for version in versions {
            described.push(version_of(client, &name, &version).await);
        }
        let group = json!({ "metadata": { "name": name }, "versions": described });
        list.items.push(encode(&group)?);
    }
    Ok(list)
}

async fn version_of(client: &Client, group: &str, version: &str) -> Value {
    match client.served_resources(group, version).await {
        Ok(found) => {
            let resources: Vec<Value> = found.into_iter().map(resource).collect();
            json!({ "version": version, "freshness": "Current", "resources": resources })
        }
        Err(error) => {
            tracing::debug!(group, version, %error, "what is served is not told");
            json!({ "version": version, "freshness": "Stale", "resources": [] })
        }
    }
}

fn resource(entry: ServedResource) -> Value {
    let scope = if entry.namespaced { "Namespaced" } else { "Cluster" };
    json!({
        "resource": entry.name, "responseKind": { "kind": entry.kind }, "scope": scope, "verbs": entry.verbs,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode;
    use crate::script::{Answer, Script};

    #[tokio::test]
    async fn an_old_server_is_asked_for_each_version() {
        let status = |code: u16| json!({ "kind": "Status", "code": code, "message": "no" });
        let groups = json!({ "groups": [{ "name": "x.io", "versions": [{ "version": "v1" }, { "version": "v2" }] }] });
        let resources = json!({ "resources": [
            { "name": "things", "kind": "Thing", "namespaced": true, "verbs": ["list"] },
            { "name": "things/status", "kind": "Thing", "namespaced": true },
        ] });
        let script = Script::new(vec![
            Answer::Json(406, status(406)),
            Answer::Json(200, groups),
            Answer::Json(200, resources),
            Answer::Json(503, status(503)),
        ]);
        let list = script.client().list_groups().await.expect("it is told");
        assert_eq!(script.asked(), ["GET /apis", "GET /apis", "GET /apis/x.io/v1", "GET /apis/x.io/v2"]);
        let expected = json!({
            "metadata": { "name": "x.io" },
            "versions": [
                { "version": "v1", "freshness": "Current", "resources": [
                    { "resource": "things", "responseKind": { "kind": "Thing" }, "scope": "Namespaced", "verbs": ["list"] },
                ] },
                { "version": "v2", "freshness": "Stale", "resources": [] },
            ],
        });
        let told: Vec<Value> = list.items.iter().map(|it| decode(it).expect("JSON")).collect();
        assert_eq!(told, [expected]);
    }
}
