//! What can be said where the server gives no answer, or knows nobody, and nothing on this machine says why.

use std::path::Path;

use corten_client::Error;
use corten_meta::address::{authority, join_host_port, split_host_port};

use super::outage::ClusterRecord;
use corten_console::{failure::Failure, shell::quoted};

/// Words of the client, what they mean for who reads them, and the command that says more; `HOST` and `SERVER` are the server's.
const CAUSES: [(&str, &str, &str); 8] = [
    (
        "UnknownIssuer",
        "the kubeconfig trusts another authority: it is of another cluster, or that authority was replaced. A fresh \
         admin.kubeconfig is on the cluster's machine",
        "openssl s_client -showcerts -connect SERVER < /dev/null",
    ),
    (
        "BadSignature",
        "the kubeconfig trusts another authority of the same name: it is of another cluster, or that authority was replaced. A \
         fresh admin.kubeconfig is on the cluster's machine",
        "openssl s_client -showcerts -connect SERVER < /dev/null",
    ),
    ("certificate expired", "its certificate has ended, or this machine's clock is ahead", "date"),
    ("certificate not valid yet", "its certificate is of a time to come: a clock is wrong, here or there", "date"),
    (
        "certificate not valid for name",
        "the kubeconfig names the server by another name or address than its certificate",
        "openssl s_client -showcerts -connect SERVER < /dev/null",
    ),
    ("failed to lookup address", "the server's name is not known here", "getent hosts HOST"),
    ("Connection refused", "nothing listens there: ask on the cluster's machine", "sudo corten why"),
    ("took longer", "it stands still, or packets to it are dropped: ask on the cluster's machine", "sudo corten why"),
];

/// The server was not reached; `said` is how.
pub(crate) fn unreached(said: &str, server: &str, kubeconfig: &Path) -> Failure {
    let (host, port) = split_host_port(authority(server));
    let place = join_host_port(host, if port.is_empty() { "443" } else { port });
    match CAUSES.iter().find(|it| said.contains(it.0)) {
        Some((_, meaning, next)) => {
            Failure::new(format!("{said}; {meaning}")).next(next.replace("HOST", host).replace("SERVER", &place))
        }
        None => {
            let show = format!("kubectl --kubeconfig={} config view --minify", quoted(&kubeconfig.to_string_lossy()));
            Failure::new(said).next(show)
        }
    }
}

/// 401 though no certificate has ended: the server says no more than that it knows nobody.
pub(crate) fn unknown_asker(said: &str, kubeconfig: &Path, life: Option<&ClusterRecord>) -> Failure {
    let path = |it: &Path| quoted(&it.to_string_lossy());
    let message = format!(
        "{said}: the server does not know who asks. The token or certificate in {} has ended, was taken back, or is of another \
         cluster or of an authority that was replaced",
        kubeconfig.display()
    );
    let fresh = life.map(ClusterRecord::admin_kubeconfig).filter(|it| it != kubeconfig);
    let next = fresh.map_or_else(
        || format!("kubectl --kubeconfig={} config view --minify", path(kubeconfig)),
        |fresh| format!("corten why --kubeconfig={}", path(&fresh)),
    );
    Failure::new(message).next(next)
}

/// Nothing of what usually gets stuck may be listed.
pub(crate) fn may_not_look(error: &Error, namespace: &str) -> Failure {
    let (place, option) = if namespace.is_empty() {
        ("the whole cluster".to_owned(), " --all-namespaces".to_owned())
    } else {
        (format!("namespace {namespace}"), format!(" -n {namespace}"))
    };
    let message = format!("of {place} you may see nothing that could be stuck: {error}");
    Failure::new(message).next(format!("kubectl auth can-i --list{option}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_not_to_be_reached_says_what_to_run() {
        let next = |said: &str| {
            let failure = unreached(said, "https://lab.example:6443", Path::new("/home/me/my config"));
            assert!(failure.message.starts_with(said));
            failure.next.expect("something to run")
        };
        for (said, wanted) in [
            ("cannot connect: failed to lookup address information", "getent hosts lab.example"),
            ("cannot connect to lab.example:6443: Connection refused (os error 111)", "sudo corten why"),
            ("connecting took longer than 10s", "sudo corten why"),
            (
                "invalid peer certificate: UnknownIssuer",
                "openssl s_client -showcerts -connect lab.example:6443 < /dev/null",
            ),
            ("what nobody has seen before", "kubectl --kubeconfig='/home/me/my config' config view --minify"),
        ] {
            assert_eq!(next(said), wanted);
        }
        let six = unreached("failed to lookup address", "https://[2001:db8::1]:6443", Path::new("c")).next;
        assert_eq!(six.as_deref(), Some("getent hosts 2001:db8::1"));
    }
}
