//! The services Cluster and Auth: there is one member, and whoever has a certificate may do everything.

use corten_etcd_api::{AuthStatusResponse, Member, MemberListResponse};

use crate::core::Core;

pub(crate) fn members(core: &Core) -> MemberListResponse {
    let member = Member {
        id: core.identity.member,
        name: "corten".into(),
        // Nobody replicates it.
        peer_urls: Vec::new(),
        client_urls: core.urls.clone(),
        is_learner: false,
    };
    MemberListResponse { header: core.newest_header(), members: vec![member] }
}

pub(crate) fn auth_status(core: &Core) -> AuthStatusResponse {
    AuthStatusResponse { header: core.newest_header(), enabled: false, auth_revision: 0 }
}
