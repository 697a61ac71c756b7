//! Certificates near their end. The cluster renews its own a month before; what still has half of that or less was not renewed.
//!
//! A kubeconfig that was copied is renewed by nobody.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use corten_machine::Layout;
use corten_meta::Time;
use x509_parser::{pem::Pem, prelude::FromDer as _};

use super::{duration::duration, survey::Group};
use corten_console::shell::quoted;
use corten_node_process::node_process::command_for;

const DAY: Duration = Duration::from_secs(24 * 3600);
/// With less left, or with a tenth of its life, a certificate should have been replaced.
const LATE: Duration = Duration::from_secs(15 * 24 * 3600);
/// Nobody replaces an authority by itself: who runs the cluster shall have time.
const LATE_FOR_AUTHORITY: Duration = Duration::from_secs(180 * 24 * 3600);

/// When a certificate is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Validity {
    pub(crate) begin: Time,
    pub(crate) end: Time,
}

impl Validity {
    /// Of the first certificate in a text that may hold more, and keys.
    pub(crate) fn of(pem: &[u8]) -> Option<Self> {
        let certificate = Pem::iter_from_buffer(pem).filter_map(Result::ok).find(|it| it.label == "CERTIFICATE")?;
        let (_, certificate) = x509_parser::certificate::X509Certificate::from_der(&certificate.contents).ok()?;
        let validity = certificate.validity();
        let time = |it: &x509_parser::time::ASN1Time| Time::from_unix_seconds(it.timestamp());
        Some(Self { begin: time(&validity.not_before), end: time(&validity.not_after) })
    }

    fn is_late(&self, late: Duration, now: Time) -> bool {
        let life = self.end.since(self.begin);
        self.end <= now.after(late.min(life / 10))
    }

    /// What is wrong with it, as what follows its name.
    fn complaint(&self, late: Duration, now: Time) -> Option<(&'static str, String)> {
        if self.begin > now {
            let ahead = duration(self.begin.since(now));
            return Some(("CertificateNotYetValid", format!("is not valid for another {ahead}: is the clock right?")));
        }
        if self.end <= now {
            let ago = duration(now.since(self.end));
            return Some(("CertificateEnded", format!("ended {ago} ago, at {}", self.end.whole_seconds())));
        }
        let left = self.end.since(now);
        let left = if left >= 2 * DAY { format!("{} days", left.as_secs() / DAY.as_secs()) } else { duration(left) };
        let said = format!("ends in {left}, at {}", self.end.whole_seconds());
        self.is_late(late, now).then_some(("CertificateEnds", said))
    }
}

/// Those of the cluster's own, in its data folder.
pub(super) fn of_cluster(layout: &Layout, log: &Path, now: Time) -> Vec<Group> {
    let data = &layout.data;
    let mut files: Vec<PathBuf> =
        fs::read_dir(data.join("pki")).into_iter().flatten().flatten().map(|it| it.path()).collect();
    files.retain(|it| it.extension().is_some_and(|it| it == "crt"));
    files.push(data.join("kubelet/pki/kubelet-server-current.pem"));
    // Nothing that an authority signed is believed where that is not.
    files.sort_by_key(|it| (it.file_stem().is_none_or(|it| it != "ca"), it.clone()));
    let group = |file: &PathBuf| {
        let is_authority = file.file_stem().is_some_and(|it| it == "ca" || it == "front-proxy-ca");
        let late = if is_authority { LATE_FOR_AUTHORITY } else { LATE };
        let (reason, said) = Validity::of(&fs::read(file).ok()?)?.complaint(late, now)?;
        let hint = match (reason, is_authority) {
            ("CertificateNotYetValid", true) => {
                " If it is, it was ahead when the cluster was made: `corten certs rotate-ca` makes another authority"
            }
            ("CertificateNotYetValid", false) => "",
            (_, true) => "; nothing it signed outlasts it, and the command replaces it while the cluster serves",
            (_, false) => "; it should have been renewed: the log says why it was not",
        };
        let next = match reason {
            "CertificateNotYetValid" => "date".to_owned(),
            _ if is_authority => command_for(layout, "certs rotate-ca"),
            _ => format!("grep -i certificate {} | tail", quoted(&log.to_string_lossy())),
        };
        Some(Group::of_cluster(&file.display().to_string(), format!("{reason}: it {said}{hint}"), next))
    };
    let mut groups: Vec<Group> = files.iter().filter_map(group).collect();
    let is_void = |it: &Group| !it.summary.starts_with("CertificateEnds");
    if groups.first().is_some_and(|it| is_void(it) && it.subjects.iter().any(|it| it.subject.ends_with("/ca.crt"))) {
        groups.truncate(1);
    }
    groups
}

/// The one that whoever asks shows to the server. `fresh` is a kubeconfig that leads to the same cluster and is renewed.
pub(crate) fn of_user(certificate: &[u8], kubeconfig: &Path, fresh: Option<&Path>, now: Time) -> Option<Group> {
    let (reason, said) = Validity::of(certificate)?.complaint(LATE, now)?;
    let path = |it: &Path| quoted(&it.to_string_lossy());
    let next = match fresh {
        Some(fresh) => format!("cp {} {}", path(fresh), path(kubeconfig)),
        None => format!("kubectl --kubeconfig={} config view --minify", path(kubeconfig)),
    };
    let summary = format!("{reason}: its certificate {said}; nobody renews a copy: put a fresh one there");
    Some(Group::of_cluster(&kubeconfig.display().to_string(), summary, next))
}

#[cfg(test)]
mod tests;
