//! What becomes of the certificates that the kubelet asks for.

use std::time::Duration;

use corten_meta::Key;

use super::World;
use crate::{
    ApiFailure, CertificateAnswer, CertificateAsked, CertificateNews, CertificatePlace, CertificateWish, Event, PodRef,
    PrivateKey,
};

impl World {
    pub(super) fn request_certificate(
        &mut self,
        pod: PodRef,
        account: &str,
        place: CertificatePlace,
        wish: &CertificateWish,
    ) {
        let (name, CertificatePlace { volume, source }) = (&pod.key.name, &place);
        let CertificateWish { signer, key_type, max_seconds, annotations } = wish;
        let seconds = max_seconds.unwrap_or(0);
        self.shown.push(format!(
            "certificate {name} {volume}/{source} {account:?} of {signer} {key_type} {seconds}s {annotations:?}"
        ));
        let result = match &self.refusal {
            Some(reason) => Err(ApiFailure::Other(reason.clone())),
            None => {
                self.n_made += 1;
                let request = format!("req-{}", self.n_made);
                self.requests.insert(request.clone(), pod.clone());
                Ok(CertificateAsked { request, key: PrivateKey(format!("KEY{}\n", self.n_made)) })
            }
        };
        self.step(Event::CertificateAsked { pod, place, result });
    }

    /// `answer req-1 issued 60 120` (minutes until it is to be replaced, and until it ends), `… denied REASON MESSAGE`,
    /// `… failed REASON MESSAGE`, `… pending`, `… gone`.
    pub(super) fn answer_request(&mut self, request: &str, answer: &str) {
        let (what, rest) = answer.split_once(' ').unwrap_or((answer, ""));
        let (reason, message) = rest.split_once(' ').unwrap_or((rest, ""));
        let (reason_text, message_text) = (reason.to_owned(), message.to_owned());
        let at = |minutes: &str| self.now.after(Duration::from_secs(60 * minutes.parse::<u64>().expect("minutes")));
        let answer = match what {
            "issued" => Some(CertificateAnswer::Issued {
                chain: "# of ours\n-----BEGIN CERTIFICATE-----\nName: x\n\nQUFB\n-----END CERTIFICATE-----\n".into(),
                begin_refresh_at: at(reason),
                not_after: at(message),
            }),
            "denied" => Some(CertificateAnswer::Denied { reason: reason_text, message: message_text }),
            "failed" => Some(CertificateAnswer::Failed { reason: reason_text, message: message_text }),
            "pending" => Some(CertificateAnswer::Pending),
            _ => None,
        };
        let pod = self.requests[request].clone();
        let key = Key::new(&*pod.key.namespace, request);
        self.step(Event::CertificateRequest {
            key,
            news: answer.map(|answer| CertificateNews { pod_uid: pod.uid, answer }),
        });
    }
}
