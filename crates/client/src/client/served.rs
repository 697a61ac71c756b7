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

impl Client {
    /// The 404 that who has every right is answered with where the server does not serve `resource`, by what it says of its groups, which
    /// everybody who is known may read. None where it does, or where that cannot be told.
    pub(crate) async fn unserved(&self, resource: &Resource) -> Option<Error> {
        let answer = match self.get_path(&resource.group_path()).await {
            Err(error) if error.is_not_found() => return Some(error),
            answer => answer.ok()?,
        };
        let served: ResourceList = decode(&answer).ok()?;
        let is_served = served.resources.iter().any(|it| it.name == resource.plural);
        (!is_served).then(|| Error::Status(Box::new(Status::no_such_path())))
    }
}
