//! News of what the cluster has for its pods, beside the pods themselves.

use corten_meta::{Key, Time};

use crate::{CertificateNews, Effect, Event, kubelet::Kubelet, pod::machine::PodMachine, spec::trust_bundles};

impl Kubelet {
    /// What the cluster has for all its pods.
    pub(super) fn cluster_told(&mut self, event: Event) -> Vec<String> {
        match event {
            Event::Service { key, service } => {
                self.services.update(key, service);
                Vec::new()
            }
            Event::TrustBundle { name, bundle } => {
                self.trust_bundles.update(name, bundle);
                self.who_trusts()
            }
            Event::TrustBundlesSynced => {
                self.trust_bundles.are_known = true;
                self.who_trusts()
            }
            Event::RuntimeClass { name, handler } => {
                self.runtime_classes.update(name, handler);
                Vec::new()
            }
            Event::RuntimeClassesSynced => {
                self.runtime_classes.are_known = true;
                self.all()
            }
            Event::ServicesSynced => {
                self.services.are_known = true;
                self.all()
            }
            _ => Vec::new(),
        }
    }

    /// News of a request for a certificate. Of one that is gone it is not said whose it was.
    pub(super) fn certificate_told(
        &mut self,
        key: &Key,
        news: Option<CertificateNews>,
        now: Time,
        effects: &mut Vec<Effect>,
    ) -> Vec<String> {
        let is_about = |(uid, it): (&String, &PodMachine)| {
            let is_it = match &news {
                Some(news) => *uid == news.pod_uid,
                None => it.certificates.knows(&key.name),
            };
            (is_it && it.who.key.namespace == key.namespace).then(|| uid.clone())
        };
        let pods: Vec<String> = self.pods.iter().filter_map(is_about).collect();
        let answer = news.as_ref().map(|it| it.answer.clone());
        for uid in &pods {
            self.with(uid, now, effects, |machine, cx| machine.certificate_answered(&key.name, answer.clone(), cx));
        }
        pods
    }

    /// Pods that have ClusterTrustBundles projected.
    fn who_trusts(&self) -> Vec<String> {
        let pods = self.pods.iter().filter(|(_, it)| trust_bundles::are_projected(&it.pod));
        pods.map(|(uid, _)| uid.clone()).collect()
    }
}
