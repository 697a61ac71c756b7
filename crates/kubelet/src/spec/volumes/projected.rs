//! Volumes of several sources in one: what the pod's ServiceAccount, the cluster and signers give, beside ConfigMaps and
//! Secrets.

use corten_api::core::v1::{
    ClusterTrustBundleProjection, Pod, PodCertificateProjection, ServiceAccountTokenProjection, Volume as ApiVolume,
};
use serde_json::json;

use super::{Access, DEFAULT_MODE, Keys, Planner, Problem, ProblemKind, mode};
use crate::{
    Backend, CertificatePlace, PersistentMount, Plugin, Secrets, SourceKind, VolumeFile, VolumeSource,
    spec::{
        pod::{all_containers, spec_of},
        pod_certificates::Certified,
        tokens::{self, Issued},
        trust_bundles::Trusted,
    },
};

impl Planner<'_> {
    pub(super) fn projected(&self, volume: &ApiVolume) -> Result<VolumeSource, Problem> {
        let mut files = Vec::new();
        let projected = volume.projected.as_ref();
        let mode = mode(projected.and_then(|it| it.default_mode), DEFAULT_MODE);
        let access = Access { mode, user: projected.and_then(|it| it.default_user) };
        for (at, part) in projected.iter().flat_map(|it| it.sources.iter().flatten()).enumerate() {
            if let Some(it) = &part.config_map {
                let items = it.items.as_ref();
                let keys = Keys { kind: SourceKind::ConfigMap, name: &it.name, items, optional: it.optional, access };
                files.extend(self.keys(&keys)?);
            } else if let Some(it) = &part.secret {
                let items = it.items.as_ref();
                let keys = Keys { kind: SourceKind::Secret, name: &it.name, items, optional: it.optional, access };
                files.extend(self.keys(&keys)?);
            } else if let Some(it) = &part.downward_api {
                files.extend(self.downward(it.items.as_ref(), access)?);
            } else if let Some(it) = &part.service_account_token {
                files.push(self.token(it, access)?);
            } else if let Some(it) = &part.cluster_trust_bundle {
                files.push(self.trusted(it, access)?);
            } else if let Some(it) = &part.pod_certificate {
                files.extend(self.certificate(it, at, access)?);
            } else {
                return Err(self.unsupported("projected, of a source that is not known"));
            }
        }
        Ok(VolumeSource::Files { plugin: Plugin::Projected, files })
    }

    /// A driver's volume, with the tokens its driver asks for (`podServiceAccountTokenAttrs`).
    pub(super) fn with_tokens(&self, mut mount: PersistentMount) -> Result<PersistentMount, Problem> {
        let Backend::Csi(csi) = &mut mount.backend else { return Ok(mount) };
        if csi.token_wishes.is_empty() {
            return Ok(mount);
        }
        let mut told = serde_json::Map::new();
        for wish in &csi.token_wishes {
            let issued = match self.given.tokens.lookup(wish) {
                Issued::Token(it) => json!({ "token": it.token, "expirationTimestamp": it.expires }),
                Issued::Asked => return Err(self.problem(ProblemKind::Asked, "the token is asked for".into())),
                Issued::Failed(reason) => return Err(self.missing(format!("failed to fetch token: {reason}"))),
            };
            told.insert(wish.audience.clone(), issued);
        }
        let told = serde_json::Value::Object(told).to_string();
        csi.tokens = Secrets([("csi.storage.k8s.io/serviceAccount.tokens".to_owned(), told)].into());
        Ok(mount)
    }

    fn token(&self, source: &ServiceAccountTokenProjection, access: Access) -> Result<VolumeFile, Problem> {
        let access = self.private(access);
        match self.given.tokens.lookup(&tokens::wish(source)) {
            Issued::Token(it) => Ok(access.file(&source.path, None, source.user, it.token.as_bytes().into())),
            Issued::Asked => Err(self.problem(ProblemKind::Asked, "the token is asked for".into())),
            Issued::Failed(reason) => Err(self.missing(format!("failed to fetch token: {reason}"))),
        }
    }

    /// As projected volumes' `collectData`: where the pod's group, or the one user all its containers run as, is given the file,
    /// nobody else needs to read it.
    fn private(&self, access: Access) -> Access {
        let group = spec_of(self.pod).security_context.as_ref().and_then(|it| it.fs_group);
        let user = common_user(self.pod);
        let is_private = group.is_some() || user.is_some();
        Access { mode: if is_private { 0o600 } else { access.mode }, user: user.or(access.user) }
    }

    /// One that is optional and not there is an empty file.
    fn trusted(&self, source: &ClusterTrustBundleProjection, access: Access) -> Result<VolumeFile, Problem> {
        let certificates = match self.given.trust_bundles.lookup(source) {
            Trusted::Found(it) => it,
            Trusted::Missing(_) if source.optional == Some(true) => String::new(),
            Trusted::Missing(reason) => return Err(self.missing(reason)),
            Trusted::Unread => {
                return Err(self.problem(ProblemKind::Unread, "ClusterTrustBundles are not read yet".into()));
            }
        };
        self.take_room(certificates.len())?;
        Ok(self.private(access).file(&source.path, None, None, certificates.into_bytes().into()))
    }

    /// The key and the chain in one file, each in one of its own, or both ways.
    fn certificate(
        &self,
        source: &PodCertificateProjection,
        at: usize,
        access: Access,
    ) -> Result<Vec<VolumeFile>, Problem> {
        let place = CertificatePlace { volume: self.volume.to_owned(), source: at };
        let issued = match self.given.certificates.lookup(&place) {
            Certified::Issued(it) => it,
            Certified::Asked => return Err(self.problem(ProblemKind::Asked, "the certificate is asked for".into())),
            Certified::Waits(request) => {
                let (signer, namespace) = (&source.signer_name, self.pod.metadata.namespace.as_deref());
                let request = format!("PodCertificateRequest {}/{request}", namespace.unwrap_or_default());
                let message = format!("volume {:?}: {request} waits for the signer {signer}", self.volume);
                return Err(self.problem(ProblemKind::Unsigned, message));
            }
            Certified::Failed(reason) => return Err(self.missing(reason.to_owned())),
            Certified::Refused(it) => {
                let kind = if it.is_failure { ProblemKind::SigningFailed } else { ProblemKind::Refused };
                return Err(Problem { kind, ..self.missing(it.message.clone()) });
            }
        };
        let (key, chain) = (&issued.key.0, &issued.chain);
        let files = [
            (&source.credential_bundle_path, format!("{key}{chain}")),
            (&source.key_path, key.clone()),
            (&source.certificate_chain_path, chain.clone()),
        ];
        let access = self.private(access);
        let wanted = files.into_iter().filter_map(|(path, content)| Some((path.as_ref()?, content)));
        let wanted = wanted.filter(|(path, _)| !path.is_empty());
        let file = |(path, content): (&String, String)| {
            self.take_room(content.len())?;
            Ok(access.file(path, None, source.user, content.into_bytes().into()))
        };
        wanted.map(file).collect()
    }
}

/// The user that all containers run as, where they agree and say so.
fn common_user(pod: &Pod) -> Option<i64> {
    let of_pod = spec_of(pod).security_context.as_ref().and_then(|it| it.run_as_user);
    let users = all_containers(pod).map(|it| it.security_context.as_ref().and_then(|it| it.run_as_user).or(of_pod));
    let users: std::collections::BTreeSet<Option<i64>> = users.collect();
    if users.len() == 1 { users.into_iter().next().flatten() } else { None }
}
