//! Does who asks for a certificate hold the key it is for?

use aws_lc_rs::signature::{self, UnparsedPublicKey, VerificationAlgorithm};
use x509_parser::{
    certification_request::X509CertificationRequest,
    oid_registry::{
        OID_KEY_TYPE_EC_PUBLIC_KEY, OID_PKCS1_SHA256WITHRSA, OID_PKCS1_SHA384WITHRSA, OID_PKCS1_SHA512WITHRSA,
        OID_SIG_ECDSA_WITH_SHA256, OID_SIG_ECDSA_WITH_SHA384, OID_SIG_ECDSA_WITH_SHA512, OID_SIG_ED25519,
    },
    prelude::FromDer,
    x509::SubjectPublicKeyInfo,
};

type Algorithm = &'static dyn VerificationAlgorithm;

const ECDSA_SHA256: [Algorithm; 3] =
    [&signature::ECDSA_P256_SHA256_ASN1, &signature::ECDSA_P384_SHA256_ASN1, &signature::ECDSA_P521_SHA256_ASN1];
const ECDSA_SHA384: [Algorithm; 3] =
    [&signature::ECDSA_P256_SHA384_ASN1, &signature::ECDSA_P384_SHA384_ASN1, &signature::ECDSA_P521_SHA384_ASN1];
const ECDSA_SHA512: [Algorithm; 1] = [&signature::ECDSA_P521_SHA512_ASN1];

/// Has its own key signed this PKCS #10 request (DER)? `None` for what is none.
pub fn is_signed_by_its_key(request: &[u8]) -> Option<bool> {
    X509CertificationRequest::from_der(request).ok().map(|(_, it)| is_signed(&it))
}

pub(crate) fn is_signed(request: &X509CertificationRequest<'_>) -> bool {
    let info = &request.certification_request_info;
    let algorithm = &request.signature_algorithm.algorithm;
    let candidates: &[Algorithm] = if *algorithm == OID_SIG_ECDSA_WITH_SHA256 {
        &ECDSA_SHA256
    } else if *algorithm == OID_SIG_ECDSA_WITH_SHA384 {
        &ECDSA_SHA384
    } else if *algorithm == OID_SIG_ECDSA_WITH_SHA512 {
        &ECDSA_SHA512
    } else if *algorithm == OID_PKCS1_SHA256WITHRSA {
        &[&signature::RSA_PKCS1_2048_8192_SHA256]
    } else if *algorithm == OID_PKCS1_SHA384WITHRSA {
        &[&signature::RSA_PKCS1_2048_8192_SHA384]
    } else if *algorithm == OID_PKCS1_SHA512WITHRSA {
        &[&signature::RSA_PKCS1_2048_8192_SHA512]
    } else if *algorithm == OID_SIG_ED25519 {
        &[&signature::ED25519]
    } else {
        &[]
    };
    verifies(candidates, &info.subject_pki, info.raw, &request.signature_value.data)
}

/// Is `proof` a signature of `message` by this key (PKIX, DER)? ECDSA over SHA-256, or Ed25519; of RSA keys it is not known:
/// what signs for them as Kubernetes does (RSASSA-PSS with the longest salt) cannot be verified here. `None` for what is no key.
pub fn is_proven(key: &[u8], message: &[u8], proof: &[u8]) -> Option<bool> {
    let (_, key) = SubjectPublicKeyInfo::from_der(key).ok()?;
    let algorithm = &key.algorithm.algorithm;
    Some(if *algorithm == OID_KEY_TYPE_EC_PUBLIC_KEY {
        verifies(&ECDSA_SHA256, &key, message, proof)
    } else {
        *algorithm == OID_SIG_ED25519 && verifies(&[&signature::ED25519], &key, message, proof)
    })
}

fn verifies(candidates: &[Algorithm], key: &SubjectPublicKeyInfo<'_>, message: &[u8], proof: &[u8]) -> bool {
    let key = &key.subject_public_key.data;
    candidates.iter().any(|it| UnparsedPublicKey::new(*it, key).verify(message, proof).is_ok())
}
