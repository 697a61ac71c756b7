//! Puts a token into Secrets that ask for one of a service account.

use corten_access::tokens::legacy;
use corten_api::resources::SECRETS;
use corten_cacher::body::BoxFuture;
use corten_meta::Status;
use serde_json::Value;

use super::{Admission, Attributes, Operation};

pub(crate) struct LegacyServiceAccountToken;

impl Admission for LegacyServiceAccountToken {
    fn name(&self) -> &'static str {
        "LegacyServiceAccountToken"
    }

    fn admit<'a>(&'a self, request: &'a Attributes<'a>, secret: &'a mut Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let writes = matches!(request.operation, Operation::Create | Operation::Update);
            let is_going = !secret["metadata"]["deletionTimestamp"].is_null();
            if request.kind.resource == SECRETS && writes && !is_going {
                legacy::fill(&request.cluster.caches, &request.cluster.pki, request.namespace, secret);
            }
            Ok(())
        })
    }
}
