//! How loops reach the API server, and as whom: the one of this process, or any other over the network.

use corten_apiserver::Fence;
use corten_client::Client;
use corten_meta::Resource;
use corten_runner::SharedInformers;

use crate::{
    in_process::{self, OwnServer},
    service_account_credentials::AccountClients,
};

/// Loops read together, and each writes under an identity of its own.
#[derive(Clone)]
pub(crate) enum LoopAccess {
    InProcess(OwnServer),
    Remote(Box<RemoteAccess>),
}

/// Another process's API server, which may be of another version, or upstream's.
#[derive(Clone)]
pub(crate) struct RemoteAccess {
    /// As the user of the kubeconfig.
    pub(crate) client: Client,
    /// Where each loop has a service account: kube-controller-manager's `--use-service-account-credentials`.
    pub(crate) accounts: Option<AccountClients>,
}

impl LoopAccess {
    /// What all controllers see. Of a server in another process it is known which kinds it serves.
    pub(crate) fn informers(&self, served: &[Resource]) -> SharedInformers {
        match self {
            Self::InProcess(server) => {
                SharedInformers::new(in_process::client(server, in_process::controller_manager()))
            }
            Self::Remote(remote) => SharedInformers::of_any_server(remote.client.clone(), served.to_vec()),
        }
    }

    /// As whom the loop of this service account in kube-system writes. A fence is of a lease that this process's server keeps: where the
    /// server is another, a process that loses its lease ends.
    pub(crate) fn writer(&self, account: &str, fence: Option<Fence>) -> Client {
        match self {
            Self::InProcess(server) => in_process::fenced(server, in_process::controller(account), fence),
            Self::Remote(remote) => match &remote.accounts {
                Some(accounts) => accounts.client(account),
                None => remote.client.clone(),
            },
        }
    }
}
