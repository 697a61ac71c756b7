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
use crate::{node_process::command_for, shell::quoted};

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
mod tests {
    use super::*;

    fn now() -> Time {
        "2026-11-20T12:00:00Z".parse().expect("a time")
    }

    /// A certificate that is valid from so many days before now to so many days after.
    fn certificate(before: i64, after: i64) -> String {
        let mut params = rcgen::CertificateParams::default();
        let day = |days: i64| {
            let second = now().unix_millis() / 1000 + days * 24 * 3600;
            std::time::UNIX_EPOCH + Duration::from_secs(u64::try_from(second).expect("after 1970"))
        };
        params.not_before = day(-before).into();
        params.not_after = day(after).into();
        let key = rcgen::KeyPair::generate().expect("a key");
        format!("{}{}", key.serialize_pem(), params.self_signed(&key).expect("signed").pem())
    }

    #[test]
    fn what_should_have_been_renewed_is_named() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let (data, log) = (dir.path(), Path::new("/data/log/corten.log"));
        let layout = Layout::new(data, "/run/corten");
        fs::create_dir_all(data.join("pki")).expect("made");
        fs::create_dir_all(data.join("kubelet/pki")).expect("made");
        for (file, before, after, said) in [
            ("pki/admin.crt", 355, 10, Some("CertificateEnds: it ends in 10 days")),
            ("pki/admin.crt", 345, 20, None),
            ("pki/apiserver.crt", 365, -1, Some("CertificateEnded: it ended 24h00m ago")),
            ("pki/apiserver.crt", -3, 365, Some("CertificateNotYetValid: it is not valid for another 3d")),
            ("pki/ca.crt", 3500, 150, Some("CertificateEnds: it ends in 150 days")),
            ("pki/ca.crt", 3000, 650, None),
            // A life that is short is renewed late in it.
            ("kubelet/pki/kubelet-server-current.pem", 9, 2, None),
            ("kubelet/pki/kubelet-server-current.pem", 29, 1, Some("it ends in 24h00m")),
        ] {
            fs::write(data.join(file), certificate(before, after)).expect("written");
            let groups = of_cluster(&layout, log, now());
            let summary = groups.first().map(|it| it.summary.clone());
            assert_eq!(summary.is_some(), said.is_some(), "{file} {before} {after}: {summary:?}");
            assert!(summary.unwrap_or_default().contains(said.unwrap_or_default()), "{file} {before} {after}");
            fs::remove_file(data.join(file)).expect("removed");
        }
        for file in ["pki/admin.crt", "pki/ca.crt", "pki/zone.crt"] {
            fs::write(data.join(file), certificate(-3, 365)).expect("written");
        }
        let groups = of_cluster(&layout, log, now());
        assert_eq!(groups.len(), 1, "the others follow from the authority");
        assert!(groups[0].summary.contains("corten certs rotate-ca"), "{}", groups[0].summary);
        for file in ["pki/admin.crt", "pki/ca.crt", "pki/zone.crt"] {
            fs::remove_file(data.join(file)).expect("removed");
        }
        fs::write(data.join("pki/odd.crt"), "no certificate").expect("written");
        assert!(of_cluster(&layout, log, now()).is_empty());
    }

    #[test]
    fn a_copy_is_told_apart_from_what_is_renewed() {
        let copy = Path::new("/home/me/.kube/config");
        let group = of_user(certificate(360, 5).as_bytes(), copy, Some(Path::new("/data/admin.kubeconfig")), now());
        assert_eq!(group.map(|it| it.next).as_deref(), Some("cp /data/admin.kubeconfig /home/me/.kube/config"));
        assert!(of_user(certificate(5, 360).as_bytes(), copy, None, now()).is_none());
    }
}
