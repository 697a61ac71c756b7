//! One page after the other of a list.

use std::collections::BTreeSet;

use corten_meta::Key;

use crate::{BoxFuture, Client, Error, InformerParams, List, ListItems, ListParams};

const PAGE: u32 = 500;

/// A list under way.
pub(super) struct Listing {
    pub(super) page: BoxFuture<'static, Result<List, Error>>,
    /// What the pages so far held.
    pub(super) seen: BTreeSet<Key>,
}

impl Listing {
    pub(super) fn begin(client: &Client, params: &InformerParams) -> Self {
        Self::go_on(client, params, String::new(), BTreeSet::new())
    }

    pub(super) fn go_on(client: &Client, params: &InformerParams, continue_token: String, seen: BTreeSet<Key>) -> Self {
        let (client, resource, metadata_only) = (client.clone(), params.resource.clone(), params.metadata_only);
        let is_optional = params.is_optional;
        if params.listed == ListItems::Groups {
            return Self { page: Box::pin(async move { client.list_groups().await }), seen };
        }
        let params = ListParams {
            namespace: params.namespace.clone(),
            label_selector: params.label_selector.clone(),
            field_selector: params.field_selector.clone(),
            resource_version: String::new(),
            limit: PAGE,
            continue_token,
        };
        if metadata_only {
            return Self { page: Box::pin(async move { client.list_metadata(&resource, &params).await }), seen };
        }
        let page = async move {
            let page = client.list(&resource, &params).await;
            match page {
                Err(error) if is_optional => Err(client.unserved_or(&resource, error).await),
                page => page,
            }
        };
        Self { page: Box::pin(page), seen }
    }
}
