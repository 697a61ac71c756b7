//! From a configuration as it is written to what is asked for each token; with everything that is wrong with it.

use std::collections::BTreeSet;

use corten_cel::Program;
use http::Uri;
use rustls_pki_types::{CertificateDer, pem::PemObject};

use super::{
    expressions::{self, Result as Gives},
    words::{Anonymous, ClaimMappings, ClaimRule, Configuration, Issuer, Jwt, Mapping, UidMapping, UserRule},
};
use crate::{
    configuration,
    identity::ISSUER,
    problems::{ConfigError, Problems},
};

const ISSUERS_MAX: usize = 64;

/// All that a configuration says.
#[derive(Debug, Default)]
pub(super) struct Compiled {
    pub(super) issuers: Vec<CompiledIssuer>,
    pub(super) anonymous: Option<Anonymous>,
}

#[derive(Debug)]
pub(super) struct CompiledIssuer {
    pub(super) issuer: Issuer,
    pub(super) username: Compilation,
    pub(super) groups: Option<Compilation>,
    pub(super) uid: Option<Compilation>,
    /// By their keys.
    pub(super) extra: Vec<(String, Program)>,
    pub(super) claim_rules: Vec<CompiledRule>,
    /// With what is said where they do not hold.
    pub(super) user_rules: Vec<(Program, String)>,
}

/// Where a part of the user comes from.
#[derive(Debug)]
pub(super) enum Compilation {
    Claim { name: String, prefix: String },
    Expression(Program),
}

#[derive(Debug)]
pub(super) enum CompiledRule {
    Claim { name: String, value: String },
    Expression { program: Program, message: String },
}

/// # Errors
/// The text is no configuration, or says what cannot be.
pub(super) fn read(text: &str) -> Result<Compiled, ConfigError> {
    configuration::read(text, compile)
}

fn compile(found: &Configuration, problems: &mut Problems) -> Compiled {
    if let Some(anonymous) = &found.anonymous
        && !anonymous.enabled
        && !anonymous.conditions.is_empty()
    {
        problems.invalid("anonymous.conditions", "", "enabled should be set to true when conditions are defined");
    }
    if found.jwt.len() > ISSUERS_MAX {
        problems.too_many("jwt", found.jwt.len(), ISSUERS_MAX);
        return Compiled::default();
    }
    let (mut urls, mut discoveries) = (BTreeSet::new(), BTreeSet::new());
    let mut issuers = Vec::new();
    for (at, jwt) in found.jwt.iter().enumerate() {
        let path = format!("jwt[{at}]");
        if !jwt.issuer.url.is_empty() && !urls.insert(&*jwt.issuer.url) {
            problems.duplicate(&format!("{path}.issuer.url"), &jwt.issuer.url);
        }
        if !jwt.issuer.discovery_url.is_empty() && !discoveries.insert(&*jwt.issuer.discovery_url) {
            problems.duplicate(&format!("{path}.issuer.discoveryURL"), &jwt.issuer.discovery_url);
        }
        issuers.extend(of_jwt(&path, jwt, problems));
    }
    Compiled { issuers, anonymous: found.anonymous.clone() }
}

fn of_jwt(path: &str, jwt: &Jwt, problems: &mut Problems) -> Option<CompiledIssuer> {
    issuer(&format!("{path}.issuer"), &jwt.issuer, problems);
    let claim_rules = claim_rules(&format!("{path}.claimValidationRules"), &jwt.claim_validation_rules, problems);
    let user_rules = user_rules(&format!("{path}.userValidationRules"), &jwt.user_validation_rules, problems);
    let mappings = &jwt.claim_mappings;
    let at = format!("{path}.claimMappings");
    let username = mapping(&format!("{at}.username"), &mappings.username, Gives::Text, problems);
    if mappings.username.claim.is_empty() && mappings.username.expression.is_empty() {
        problems.required(&format!("{at}.username"), "claim or expression is required");
    }
    let groups = mapping(&format!("{at}.groups"), &mappings.groups, Gives::Texts, problems);
    let uid = mapping(&format!("{at}.uid"), &of_uid(&mappings.uid), Gives::Text, problems);
    let extra = extra(&format!("{at}.extra"), mappings, problems);
    verified_email(&format!("{at}.username.expression"), jwt, problems);
    let issuer = jwt.issuer.clone();
    Some(CompiledIssuer { issuer, username: username?, groups, uid, extra, claim_rules, user_rules })
}

/// A uid never has a prefix.
fn of_uid(uid: &UidMapping) -> Mapping {
    let prefix = uid.expression.is_empty().then(String::new);
    Mapping { claim: uid.claim.clone(), expression: uid.expression.clone(), prefix }
}

fn issuer(path: &str, issuer: &Issuer, problems: &mut Problems) {
    let at = format!("{path}.url");
    if issuer.url.is_empty() {
        problems.required(&at, "URL is required");
    } else {
        url(&at, &issuer.url, problems);
        if issuer.url == ISSUER {
            problems.invalid(&at, ISSUER, &format!("URL must not overlap with disallowed issuers: [{ISSUER}]"));
        }
    }
    if !issuer.discovery_url.is_empty() {
        let at = format!("{path}.discoveryURL");
        url(&at, &issuer.discovery_url, problems);
        if issuer.discovery_url.trim_end_matches('/') == issuer.url.trim_end_matches('/') {
            problems.invalid(&at, &issuer.discovery_url, "discoveryURL must be different from URL");
        }
    }
    audiences(path, issuer, problems);
    let mut authorities = CertificateDer::pem_slice_iter(issuer.certificate_authority.as_bytes());
    if !issuer.certificate_authority.is_empty() && !authorities.any(|it| it.is_ok()) {
        let detail = "data does not contain any valid RSA or ECDSA certificates";
        problems.invalid(&format!("{path}.certificateAuthority"), "<omitted>", detail);
    }
    egress_selector(&format!("{path}.egressSelectorType"), &issuer.egress_selector_type, problems);
}

/// There is none to select, as in a kube-apiserver without `--egress-selector-config-file` (`egressLookupForType`).
fn egress_selector(path: &str, selected: &str, problems: &mut Problems) {
    match selected {
        "" => {}
        "controlplane" | "cluster" => {
            problems.other(format!("oidc: egress lookup required with egress selector type {selected:?}"));
        }
        _ => problems.invalid(path, selected, "egress selector must be either controlplane or cluster"),
    }
}

fn url(path: &str, text: &str, problems: &mut Problems) {
    let Ok(url) = text.parse::<Uri>() else { return problems.invalid(path, text, "it is no URL") };
    if url.scheme_str() != Some("https") || url.host().is_none_or(str::is_empty) {
        problems.invalid(path, text, "URL scheme must be https");
    }
    if url.authority().is_some_and(|it| it.as_str().contains('@')) {
        problems.invalid(path, text, "URL must not contain a username or password");
    }
    if url.query().is_some() {
        problems.invalid(path, text, "URL must not contain a query");
    }
    if text.contains('#') {
        problems.invalid(path, text, "URL must not contain a fragment");
    }
}

fn audiences(path: &str, issuer: &Issuer, problems: &mut Problems) {
    let at = format!("{path}.audiences");
    if issuer.audiences.is_empty() {
        problems.required(&at, &format!("at least one {at} is required"));
    }
    let mut seen = BTreeSet::new();
    for (nth, audience) in issuer.audiences.iter().enumerate() {
        let at = format!("{at}[{nth}]");
        if audience.is_empty() {
            problems.required(&at, "audience can't be empty");
        } else if !seen.insert(audience) {
            problems.duplicate(&at, audience);
        }
    }
    let (at, policy) = (format!("{path}.audienceMatchPolicy"), &*issuer.audience_match_policy);
    if issuer.audiences.len() > 1 && policy != "MatchAny" {
        problems.invalid(&at, policy, "audienceMatchPolicy must be MatchAny for multiple audiences");
    }
    if issuer.audiences.len() == 1 && !matches!(policy, "" | "MatchAny") {
        problems.invalid(&at, policy, "audienceMatchPolicy must be empty or MatchAny for single audience");
    }
}

fn mapping(path: &str, of: &Mapping, wanted: Gives, problems: &mut Problems) -> Option<Compilation> {
    let Mapping { claim, prefix, expression } = of;
    if !claim.is_empty() && !expression.is_empty() {
        problems.invalid(path, "", "claim and expression can't both be set");
        return None;
    }
    if !expression.is_empty() {
        if prefix.is_some() {
            problems.invalid(
                &format!("{path}.prefix"),
                prefix.as_deref().unwrap_or_default(),
                "prefix can't be set when expression is set",
            );
        }
        let program = expressions::of_claims(&format!("{path}.expression"), expression, wanted, problems)?;
        return Some(Compilation::Expression(program));
    }
    if claim.is_empty() {
        if prefix.as_ref().is_some_and(|it| !it.is_empty()) {
            problems.required(&format!("{path}.claim"), "non-empty claim name is required when prefix is set");
        }
        return None;
    }
    let Some(prefix) = prefix.clone() else {
        let detail = "prefix is required when claim is set. It can be set to an empty string to disable prefixing";
        problems.required(&format!("{path}.prefix"), detail);
        return None;
    };
    Some(Compilation::Claim { name: claim.clone(), prefix })
}

fn extra(path: &str, mappings: &ClaimMappings, problems: &mut Problems) -> Vec<(String, Program)> {
    let mut seen = BTreeSet::new();
    let mut all = Vec::new();
    for (nth, mapping) in mappings.extra.iter().enumerate() {
        let at = format!("{path}[{nth}]");
        let key = &*mapping.key;
        let at_key = format!("{at}.key");
        if key.is_empty() {
            problems.required(&at_key, "key is required");
        } else if !is_domain_prefixed(key) {
            problems.invalid(&at_key, key, "must be a domain-prefixed path (such as \"acme.io/foo\")");
        } else if key.chars().any(char::is_uppercase) {
            problems.invalid(&at_key, key, "key must be lowercase");
        } else if is_reserved(key) {
            problems.invalid(
                &at_key,
                key,
                "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use",
            );
        }
        if !seen.insert(key) {
            problems.duplicate(&at_key, key);
        }
        if mapping.value_expression.is_empty() {
            problems.required(&format!("{at}.valueExpression"), "valueExpression is required");
            continue;
        }
        let at = format!("{at}.valueExpression");
        let program = expressions::of_claims(&at, &mapping.value_expression, Gives::Texts, problems);
        all.extend(program.map(|it| (key.to_owned(), it)));
    }
    all
}

fn is_domain_prefixed(key: &str) -> bool {
    let Some((domain, path)) = key.split_once('/') else { return false };
    let is_label = |it: &str| {
        let plain = |it: u8| it.is_ascii_alphanumeric();
        it.bytes().all(|it| plain(it) || it == b'-')
            && it.bytes().next().is_some_and(plain)
            && it.bytes().last().is_some_and(plain)
    };
    !path.is_empty() && domain.split('.').all(is_label)
}

fn is_reserved(key: &str) -> bool {
    let domain = key.split('/').next().unwrap_or_default();
    ["k8s.io", "kubernetes.io"].iter().any(|it| domain == *it || domain.ends_with(&format!(".{it}")))
}

fn claim_rules(path: &str, rules: &[ClaimRule], problems: &mut Problems) -> Vec<CompiledRule> {
    let (mut claims, mut sources) = (BTreeSet::new(), BTreeSet::new());
    let mut all = Vec::new();
    for (nth, rule) in rules.iter().enumerate() {
        let at = format!("{path}[{nth}]");
        match (&*rule.claim, &*rule.expression) {
            ("", "") => problems.required(&at, "claim or expression is required"),
            (claim, "") => {
                if !claims.insert(claim) {
                    problems.duplicate(&format!("{at}.claim"), claim);
                }
                if !rule.message.is_empty() {
                    problems.invalid(&format!("{at}.message"), &rule.message, "message can't be set when claim is set");
                }
                all.push(CompiledRule::Claim { name: claim.to_owned(), value: rule.required_value.clone() });
            }
            ("", source) => {
                if !sources.insert(source) {
                    problems.duplicate(&format!("{at}.expression"), source);
                }
                if !rule.required_value.is_empty() {
                    let detail = "requiredValue can't be set when expression is set";
                    problems.invalid(&format!("{at}.requiredValue"), &rule.required_value, detail);
                }
                let program = expressions::of_claims(&format!("{at}.expression"), source, Gives::Bool, problems);
                let message = rule.message.clone();
                all.extend(program.map(|program| CompiledRule::Expression { program, message }));
            }
            (claim, _) => problems.invalid(&at, claim, "claim and expression can't both be set"),
        }
    }
    all
}

fn user_rules(path: &str, rules: &[UserRule], problems: &mut Problems) -> Vec<(Program, String)> {
    let mut sources = BTreeSet::new();
    let mut all = Vec::new();
    for (nth, rule) in rules.iter().enumerate() {
        let at = format!("{path}[{nth}].expression");
        if rule.expression.is_empty() {
            problems.required(&at, "expression is required");
            continue;
        }
        if !sources.insert(&*rule.expression) {
            problems.duplicate(&at, &rule.expression);
            continue;
        }
        all.extend(expressions::of_user(&at, &rule.expression, problems).map(|it| (it, rule.message.clone())));
    }
    all
}

/// An address is nobody's until its issuer says that it was verified, and an expression must look (`validateClaimMappings`).
fn verified_email(path: &str, jwt: &Jwt, problems: &mut Problems) {
    let names = |source: &str, claim: &str| expressions::selects_claim(source, claim);
    let username = &jwt.claim_mappings.username.expression;
    if !names(username, "email") {
        return;
    }
    let extra = jwt.claim_mappings.extra.iter().map(|it| &it.value_expression);
    let rules = jwt.claim_validation_rules.iter().map(|it| &it.expression);
    if extra.chain(rules).chain([username]).any(|it| names(it, "email_verified")) {
        return;
    }
    problems.invalid(
        path,
        username,
        "claims.email_verified must be used in claimMappings.username.expression or claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when claims.email is used in claimMappings.username.expression",
    );
}
