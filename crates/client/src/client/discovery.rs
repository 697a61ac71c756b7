//! Which server it is, and what it serves, as every release of Kubernetes tells it. Everybody who is known may read it.

use serde::{Deserialize, Serialize};

use super::decode;
use crate::{Client, Error};

/// A group that a server serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedGroup {
    pub name: String,
    /// The preferred one first.
    pub versions: Vec<String>,
}

/// A resource in one version of a group.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct ServedResource {
    /// The plural.
    pub name: String,
    #[serde(default)]
    pub kind: String,
    #[serde(default)]
    pub namespaced: bool,
    #[serde(default)]
    pub verbs: Vec<String>,
}

#[derive(Deserialize)]
struct Groups {
    groups: Vec<Group>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Group {
    name: String,
    versions: Vec<GroupVersion>,
    preferred_version: Option<GroupVersion>,
}

#[derive(Deserialize)]
struct GroupVersion {
    version: String,
}

impl From<Group> for ServedGroup {
    fn from(Group { name, versions, preferred_version }: Group) -> Self {
        let preferred = preferred_version.map(|it| it.version);
        let (first, others): (Vec<String>, Vec<String>) =
            versions.into_iter().map(|it| it.version).partition(|it| preferred.as_ref() == Some(it));
        Self { name, versions: first.into_iter().chain(others).collect() }
    }
}

impl Client {
    /// The server's release: `v1.37.0`.
    ///
    /// # Errors
    /// As [`Client::request`].
    pub async fn server_version(&self) -> Result<String, Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Version {
            git_version: String,
        }
        decode::<Version>(&self.get_path("/version").await?).map(|it| it.git_version)
    }

    /// All groups but the core group.
    ///
    /// # Errors
    /// As [`Client::request`].
    pub async fn served_groups(&self) -> Result<Vec<ServedGroup>, Error> {
        let found: Groups = decode(&self.get_path("/apis").await?)?;
        Ok(found.groups.into_iter().map(ServedGroup::from).collect())
    }

    /// The resources of a version of a group, whose name is empty for the core group; without what is below them, as `pods/status`.
    ///
    /// # Errors
    /// As [`Client::request`]: not found where the server does not serve it.
    pub async fn served_resources(&self, group: &str, version: &str) -> Result<Vec<ServedResource>, Error> {
        #[derive(Deserialize)]
        struct Resources {
            resources: Vec<ServedResource>,
        }
        let path = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
        let found: Resources = decode(&self.get_path(&path).await?)?;
        Ok(found.resources.into_iter().filter(|it| !it.name.contains('/')).collect())
    }
}
