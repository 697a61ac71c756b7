//! The name server of this node in the place of the cluster's: names are answered here whatever becomes of other machines.
//!
//! The slice of the Service `kube-dns` leads to one name server, for nodes that have none. A Service that somebody gives other slices, as
//! that of a CoreDNS, is led as they say.

use std::borrow::Cow;

use corten_api::cluster_network::{NAME_SERVER_MANAGER, NAME_SERVER_SERVICE};
use corten_meta::Key;

use crate::{
    projections::{Endpoint, EndpointSlice},
    rules::{Backend, Family},
};

const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";

/// The Service by which Pods ask for names.
pub(crate) fn service() -> Key {
    let (namespace, name) = NAME_SERVER_SERVICE;
    Key::new(namespace, name)
}

/// The slice as this node goes by it.
pub(crate) fn led_here<'a>(slice: &'a EndpointSlice, own: Option<Backend>, node_name: &str) -> Cow<'a, EndpointSlice> {
    let Some(own) = own.filter(|it| is_of_cluster(slice) && slice.address_type == address_type(*it)) else {
        return Cow::Borrowed(slice);
    };
    let mut slice = slice.clone();
    slice.endpoints = vec![Endpoint {
        addresses: vec![own.address.to_string()],
        node_name: Some(node_name.to_owned()),
        ..Endpoint::default()
    }];
    slice.ports.iter_mut().for_each(|it| it.port = Some(own.port));
    Cow::Owned(slice)
}

fn is_of_cluster(slice: &EndpointSlice) -> bool {
    slice.service() == Some(service())
        && slice.metadata.labels.get(MANAGED_BY).is_some_and(|it| it == NAME_SERVER_MANAGER)
}

fn address_type(backend: Backend) -> &'static str {
    if Family::of(backend.address) == Family::V4 { "IPv4" } else { "IPv6" }
}
