//! The certificate that etcd is shown. Who runs etcd renews it and brings it here, so its end is told of in time: behind it no server of the
//! cluster reads or writes anything.

use std::{
    fs,
    path::PathBuf,
    time::{Duration, SystemTime},
};

use corten_pki::Credential;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// As long before its end as certificates of the cluster's own are renewed.
const SOON: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Looks at it every day until `stopping` is ready.
pub(crate) async fn watch(file: PathBuf, stopping: impl Future<Output = ()> + Send) {
    let look = async {
        let mut days = tokio::time::interval(DAY);
        loop {
            days.tick().await;
            // What cannot be read the store tells of: it goes on with what it has read before.
            let certificate = fs::read_to_string(&file).unwrap_or_default();
            if let Some(concern) = concern(certificate, SystemTime::now()) {
                tracing::warn!(file = %file.display(), "the certificate that etcd is shown {concern}: bring a new one, which the next connection shows");
            }
        }
    };
    tokio::select! {
        biased;
        () = stopping => {}
        () = look => {}
    }
}

fn concern(certificate: String, now: SystemTime) -> Option<String> {
    let (_, end) = Credential { certificate, key: String::new() }.lifetime()?;
    match end.duration_since(now) {
        Ok(left) if left > SOON => None,
        Ok(left) => Some(format!("ends in {} days", left.as_secs() / DAY.as_secs())),
        Err(_) => Some("has ended".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use corten_pki::EtcdAuthority;

    use super::*;

    #[test]
    fn its_end_is_told_of_a_month_before() {
        let folder = tempfile::tempdir().expect("a folder");
        EtcdAuthority::load_or_create(folder.path(), &["localhost".to_owned()]).expect("an authority");
        let certificate = fs::read_to_string(folder.path().join("apiserver-etcd-client.crt")).expect("it is there");
        let after = |days: u32| concern(certificate.clone(), SystemTime::now() + DAY * days);
        assert_eq!(after(0), None);
        assert_eq!(after(330), None);
        assert_eq!(after(345).as_deref(), Some("ends in 19 days"));
        assert_eq!(after(400).as_deref(), Some("has ended"));
        assert_eq!(concern(String::new(), SystemTime::now()), None);
    }
}
