//! Whether a server serves a resource at all.

use corten_meta::{Resource, Status};
use serde::Deserialize;

use super::decode;
use crate::{Client, Error};

#[derive(Deserialize)]
struct ResourceList {
    resources: Vec<Served>,
}

#[derive(Deserialize)]
struct Served {
    name: String,
}

#[derive(Deserialize)]
struct Groups {
    groups: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    name: String,
    versions: Vec<Version>,
}

#[derive(Deserialize)]
struct Version {
    version: String,
}

impl Client {
    /// Does the server itself say that it does not serve `resource`? Everybody who is known may read that. What stands before a server
    /// may answer 404 to everything: that says nothing.
    pub(crate) async fn does_not_serve(&self, resource: &Resource) -> bool {
        match self.get_path(&resource.group_path()).await {
            Ok(answer) => {
                let served = decode::<ResourceList>(&answer);
                served.is_ok_and(|it| !it.resources.iter().any(|it| it.name == resource.plural))
            }
            Err(error) if error.is_not_found() && !resource.group.is_empty() => self.lacks_version(resource).await,
            Err(_) => false,
        }
    }

    async fn lacks_version(&self, resource: &Resource) -> bool {
        let Ok(groups) = self.get_path("/apis").await.and_then(|it| decode::<Groups>(&it)) else { return false };
        let of_group = groups.groups.iter().filter(|it| it.name == resource.group);
        !of_group.flat_map(|it| &it.versions).any(|it| it.version == resource.version)
    }

    /// The 404 that who has every right is answered with by a server that does not serve the resource. `error` where it does, or
    /// where that cannot be told.
    pub(crate) async fn unserved_or(&self, resource: &Resource, error: Error) -> Error {
        let is_code = |code| error.status().is_some_and(|it| it.code == code);
        match (is_code(403), is_code(404)) {
            (false, false) => error,
            _ if self.does_not_serve(resource).await => Error::Status(Box::new(Status::no_such_path())),
            // It is one that whoever waits for the list tries again.
            (_, true) => {
                Error::Decode(format!("404 for {}, which the server does not say that it lacks", resource.qualified()))
            }
            _ => error,
        }
    }
}
