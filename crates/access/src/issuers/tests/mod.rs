mod served;

use super::config;

const GOOD: &str = "
apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer:
    url: https://issuer.example
    audiences: [corten]
  claimMappings:
    username: {claim: sub, prefix: 'oidc:'}
";

fn refusal(text: &str) -> String {
    let error = config::read(text).err().map(|it| it.0).unwrap_or_default();
    error.strip_prefix("failed to load authentication configuration: ").unwrap_or(&error).to_owned()
}

#[test]
fn a_configuration_is_read_strictly() {
    assert_eq!(refusal(GOOD), "");
    for (from, to, said) in [
        ("/v1", "/v1beta1", ""),
        (
            "/v1",
            "/v1alpha1",
            "no kind \"AuthenticationConfiguration\" is registered for version \"apiserver.config.k8s.io/v1alpha1\"",
        ),
        (
            "audiences: [corten]",
            "audience: [corten]",
            "strict decoding error: line 7 column 5: unknown field `audience`",
        ),
        (
            "https://issuer.example",
            "http://issuer.example",
            "jwt[0].issuer.url: Invalid value: \"http://issuer.example\": URL scheme must be https",
        ),
        (
            "https://issuer.example",
            "https://a@issuer.example?x=1",
            "[jwt[0].issuer.url: Invalid value: \"https://a@issuer.example?x=1\": URL must not contain a username or password, jwt[0].issuer.url: Invalid value: \"https://a@issuer.example?x=1\": URL must not contain a query]",
        ),
        (
            "https://issuer.example",
            "https://kubernetes.default.svc.cluster.local",
            "jwt[0].issuer.url: Invalid value: \"https://kubernetes.default.svc.cluster.local\": URL must not overlap with disallowed issuers:",
        ),
        ("[corten]", "[]", "jwt[0].issuer.audiences: Required value: at least one jwt[0].issuer.audiences is required"),
        (
            "[corten]",
            "[a, b]",
            "jwt[0].issuer.audienceMatchPolicy: Invalid value: \"\": audienceMatchPolicy must be MatchAny for multiple audiences",
        ),
        (
            "[corten]",
            "[a]\n    certificateAuthority: none",
            "jwt[0].issuer.certificateAuthority: Invalid value: \"<omitted>\": data does not contain any valid RSA or ECDSA certificates",
        ),
        (
            "[corten]",
            "[a]\n    egressSelectorType: controlplane",
            "oidc: egress lookup required with egress selector type \"controlplane\"",
        ),
        (
            "[corten]",
            "[a]\n    egressSelectorType: etcd",
            "jwt[0].issuer.egressSelectorType: Invalid value: \"etcd\": egress selector must be either controlplane or cluster",
        ),
        (
            ", prefix: 'oidc:'",
            "",
            "jwt[0].claimMappings.username.prefix: Required value: prefix is required when claim is set. It can be set to an empty string to disable prefixing",
        ),
        (
            "{claim: sub, prefix: 'oidc:'}",
            "{}",
            "jwt[0].claimMappings.username: Required value: claim or expression is required",
        ),
        (
            "{claim: sub, prefix: 'oidc:'}",
            "{claim: sub, expression: claims.sub}",
            "jwt[0].claimMappings.username: Invalid value: \"\": claim and expression can't both be set",
        ),
        (
            "{claim: sub, prefix: 'oidc:'}",
            "{expression: '1 + 1'}",
            "jwt[0].claimMappings.username.expression: Invalid value: \"1 + 1\": must evaluate to string",
        ),
        (
            "{claim: sub, prefix: 'oidc:'}",
            "{expression: 'claims.'}",
            "jwt[0].claimMappings.username.expression: Invalid value: \"claims.\": compilation failed: ERROR: <input>:1:8: Syntax error",
        ),
        (
            "{claim: sub, prefix: 'oidc:'}",
            "{expression: claims.email}",
            "jwt[0].claimMappings.username.expression: Invalid value: \"claims.email\": claims.email_verified must be used in",
        ),
        (
            "{claim: sub, prefix: 'oidc:'}",
            "{expression: 'claims.email + \"claims.email_verified\"'}",
            "jwt[0].claimMappings.username.expression: Invalid value: ",
        ),
        (
            "{claim: sub, prefix: 'oidc:'}",
            "{expression: 'claims.?email_verified.orValue(true) == true ? claims.email : \"\"'}",
            "",
        ),
        ("{claim: sub, prefix: 'oidc:'}", "{expression: 'claims.sub + \"claims.email\"'}", ""),
        (
            "{claim: sub, prefix: 'oidc:'}",
            "{claim: sub, prefix: ''}\n    extra: [{key: k8s.io/x, valueExpression: claims.x}]",
            "jwt[0].claimMappings.extra[0].key: Invalid value: \"k8s.io/x\": k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use",
        ),
        (
            "{claim: sub, prefix: 'oidc:'}",
            "{claim: sub, prefix: ''}\n  userValidationRules: [{expression: user.username}]",
            "jwt[0].userValidationRules[0].expression: Invalid value: \"user.username\": must evaluate to bool",
        ),
        (
            "{claim: sub, prefix: 'oidc:'}",
            "{claim: sub, prefix: ''}\n  claimValidationRules: [{claim: hd, requiredValue: a}, {claim: hd}]",
            "jwt[0].claimValidationRules[1].claim: Duplicate value: \"hd\"",
        ),
        (
            "jwt:",
            "anonymous: {enabled: false, conditions: [{path: /livez}]}\njwt:",
            "anonymous.conditions: Invalid value: \"\": enabled should be set to true when conditions are defined",
        ),
    ] {
        let text = GOOD.replacen(from, to, 1);
        let found = refusal(&text);
        assert!(if said.is_empty() { found.is_empty() } else { found.starts_with(said) }, "{to}: {found}");
    }
}

#[test]
fn an_issuer_is_named_once() {
    let again = "- issuer: {url: https://issuer.example, audiences: [b]}\n  claimMappings: {username: {claim: sub, prefix: ''}}\n";
    assert_eq!(refusal(&format!("{GOOD}{again}")), "jwt[1].issuer.url: Duplicate value: \"https://issuer.example\"");
}
