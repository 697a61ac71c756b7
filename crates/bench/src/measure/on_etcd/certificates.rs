//! Of one authority for all: what etcd shows and is asked with, what kube-apiserver shows, and who its administrator is.

use std::{fs, path::PathBuf};

use anyhow::{Context, Result};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair};

use super::super::etcd_server::EtcdFiles;

pub(super) struct Certificates {
    folder: PathBuf,
    authority: CertifiedIssuer<'static, KeyPair>,
}

impl Certificates {
    pub(super) fn new(folder: PathBuf) -> Result<Self> {
        fs::create_dir_all(&folder).context("making a folder for certificates")?;
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "bench");
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        fs::write(folder.join("ca.crt"), authority.pem()).context("writing the authority's certificate")?;
        Ok(Self { folder, authority })
    }

    pub(super) fn ca(&self) -> PathBuf {
        self.folder.join("ca.crt")
    }

    /// The files of a certificate and its key. Whoever has it may serve on this machine, and ask as this user.
    pub(super) fn pair(&self, user: &str, group: Option<&str>) -> Result<(PathBuf, PathBuf)> {
        let mut params = CertificateParams::new(["localhost", "127.0.0.1"].map(str::to_owned))?;
        params.distinguished_name.push(DnType::CommonName, user);
        if let Some(group) = group {
            params.distinguished_name.push(DnType::OrganizationName, group);
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.authority)?;
        let [certificate_file, key_file] = ["crt", "key"].map(|it| self.folder.join(format!("{user}.{it}")));
        fs::write(&certificate_file, certificate.pem()).context("writing a certificate")?;
        fs::write(&key_file, key.serialize_pem()).context("writing a key")?;
        Ok((certificate_file, key_file))
    }

    pub(super) fn of_etcd(&self) -> Result<EtcdFiles> {
        Ok(EtcdFiles { ca: self.ca(), server: self.pair("etcd", None)?, client: self.pair("etcd-client", None)? })
    }
}
