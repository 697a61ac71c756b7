//! Whether a server serves a resource at all.

use super::discovery::ServedGroup;
use crate::{Client, Error};
use corten_meta::{Resource, Status};

impl Client {
    /// Does the server itself say that it does not serve `resource`? Everybody who is known may read that. What stands before a server
    /// may answer 404 to everything: that says nothing.
    async fn does_not_serve(&self, resource: &Resource) -> bool {
        match self.served_resources(&resource.group, &resource.version).await {
            Ok(served) => !served.iter().any(|it| it.name == resource.plural),
            Err(error) if error.is_not_found() && !resource.group.is_empty() => {
                let groups = self.served_groups().await;
                let has_version = |it: &ServedGroup| {
                    it.name == resource.group && it.versions.iter().any(|it| *it == resource.version)
                };
                groups.is_ok_and(|it| !it.iter().any(has_version))
            }
            Err(_) => false,
        }
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
