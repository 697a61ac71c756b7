//! Groups that a token names only the place of.

use super::*;
use crate::tokens::ISSUER;

const SOURCE: &str = "/groups-of-jane";
/// Another issuer, at the same server.
const OTHER: &str = "/other";

const BY_CLAIM: &str = "  claimMappings:
    username: {claim: sub, prefix: 'oidc:'}
    groups: {claim: groups, prefix: 'oidc:'}
";

impl Issuer {
    /// Of a token that names only the place of its groups.
    fn claims_elsewhere(&self) -> Value {
        self.claims_at(&format!("{}{SOURCE}", self.url))
    }

    fn claims_at(&self, endpoint: &str) -> Value {
        let mut claims = self.claims();
        claims.as_object_mut().expect("an object").remove("groups");
        claims["_claim_names"] = json!({ "groups": "directory" });
        claims["_claim_sources"] = json!({ "directory": { "endpoint": endpoint, "access_token": "s3cret" } });
        claims
    }

    /// What the source says, as it is signed.
    fn groups(&self, groups: &[&str]) -> Value {
        json!({ "iss": self.url, "aud": "corten", "exp": NOW + 60, "groups": groups })
    }

    fn n_asked(&self) -> usize {
        self.heads.lock().iter().filter(|it| it.contains(SOURCE)).count()
    }
}

/// What a review says of the token: its groups, or why it is nobody's.
async fn reviewed(server: &ServerWithIssuers, token: &str) -> Result<Value, String> {
    let review = server.access.review_token(&json!({ "token": token })).await.expect("there is a token");
    match review["authenticated"].as_bool() {
        Some(true) => Ok(review["user"]["groups"].clone()),
        _ => Err(review["error"].as_str().unwrap_or_default().to_owned()),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_come_from_where_a_token_says_they_are() {
    let issuer = Issuer::start().await;
    let (key, other) = (Signer::curve("c"), Signer::curve("o"));
    issuer.signs_with(&[&key]);
    let server = running(&issuer.configuration(BY_CLAIM)).await;
    issuer.answer(SOURCE, "200 OK", &(key.token("ES256", &issuer.groups(&["dev", "ops"])) + "\n"));
    let token = key.token("ES256", &issuer.claims_elsewhere());
    let found = json!(["oidc:dev", "oidc:ops", "system:authenticated"]);
    for _ in 0..3 {
        assert_eq!(who(&server, &token).await.map(|it| it["groups"].clone()), Ok(found.clone()));
        assert_eq!(reviewed(&server, &token).await, Ok(found.clone()));
    }
    assert_eq!(issuer.n_asked(), 1, "what it said holds for a while");
    let head = issuer.heads.lock().iter().find(|it| it.contains(SOURCE)).cloned().unwrap_or_default();
    assert!(head.to_lowercase().contains("authorization: bearer s3cret\r\n"), "{head}");

    // Who signs what a source says proves itself, as any issuer does.
    let url = format!("{}{OTHER}", issuer.url);
    let description = json!({ "issuer": url, "jwks_uri": format!("{url}/keys") }).to_string();
    issuer.answer(&format!("{OTHER}{DISCOVERY}"), "200 OK", &description);
    issuer.answer(&format!("{OTHER}/keys"), "200 OK", &json!({ "keys": [other.jwk()] }).to_string());
    let mut groups = issuer.groups(&["far"]);
    groups["iss"] = url.into();
    issuer.answer("/far", "200 OK", &other.token("ES256", &groups));
    let token = key.token("ES256", &issuer.claims_at(&format!("{}/far", issuer.url)));
    assert_eq!(reviewed(&server, &token).await, Ok(json!(["oidc:far", "system:authenticated"])));

    // One that holds its groups asks nobody.
    let mut claims = issuer.claims_elsewhere();
    claims["groups"] = json!(["here"]);
    let held = reviewed(&server, &key.token("ES256", &claims)).await;
    assert_eq!((held, issuer.n_asked()), (Ok(json!(["oidc:here", "system:authenticated"])), 1));
}

/// Groups are elsewhere because they are many.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_source_says_holds_however_much_it_is() {
    let issuer = Issuer::start().await;
    let key = Signer::curve("c");
    issuer.signs_with(&[&key]);
    let server = running(&issuer.configuration(BY_CLAIM)).await;
    let groups: Vec<String> = (0..4000).map(|it| format!("0a1b2c3d-0000-0000-0000-{it:012}")).collect();
    let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
    issuer.answer(SOURCE, "200 OK", &key.token("ES256", &issuer.groups(&groups)));
    let token = key.token("ES256", &issuer.claims_elsewhere());
    for _ in 0..3 {
        let found = who(&server, &token).await.map(|it| it["groups"].as_array().map(Vec::len));
        assert_eq!(found, Ok(Some(4001)));
    }
    assert_eq!(issuer.n_asked(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_who_come_with_one_token_ask_its_source_once() {
    let issuer = Issuer::start().await;
    let key = Signer::curve("c");
    issuer.signs_with(&[&key]);
    let server = Arc::new(running(&issuer.configuration(BY_CLAIM)).await);
    issuer.answer(SOURCE, "200 OK", &key.token("ES256", &issuer.groups(&["dev"])));
    let token = key.token("ES256", &issuer.claims_elsewhere());
    let mut tasks = JoinSet::new();
    for _ in 0..50 {
        let (server, token) = (server.clone(), token.clone());
        tasks.spawn(async move { who(&server, &token).await.is_ok() });
    }
    assert!(tasks.join_all().await.into_iter().all(|it| it));
    assert_eq!(issuer.n_asked(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_proves_nothing_lets_nobody_in() {
    let issuer = Issuer::start().await;
    let (key, stranger) = (Signer::curve("c"), Signer::curve("c"));
    issuer.signs_with(&[&key]);
    let server = running(&issuer.configuration(BY_CLAIM)).await;
    let groups = issuer.groups(&["dev"]);
    let with = |name: &str, value: Value| {
        let mut groups = groups.clone();
        groups[name] = value;
        key.token("ES256", &groups)
    };
    let redirect = format!("302 Found\r\nLocation: {}{SOURCE}", issuer.url);
    issuer.answer(SOURCE, "200 OK", &key.token("ES256", &groups));
    for (nth, (head, body, said)) in [
        ("200 OK", stranger.token("ES256", &groups), "failed to verify signature"),
        ("200 OK", with("exp", json!(NOW - 1)), "token is expired"),
        ("200 OK", with("aud", json!("else")), "expected audience in"),
        ("200 OK", with("iss", json!("https://localhost:1")), "verifying untrusted issuer https://localhost:1 failed"),
        (
            "200 OK",
            key.token("ES256", &json!({ "iss": issuer.url, "aud": "corten", "exp": NOW + 60 })),
            "did not contain claim: groups",
        ),
        ("200 OK", "no token".into(), "is no signed token"),
        ("200 OK", "x".repeat(300 * 1024), "is larger than 262144 bytes"),
        ("401 Unauthorized", String::new(), "error while getting distributed claim JWT: 401 Unauthorized"),
        (&*redirect, String::new(), "error while getting distributed claim JWT: 302 Found"),
    ]
    .into_iter()
    .enumerate()
    {
        let path = format!("/source-{nth}");
        issuer.answer(&path, head, &body);
        let token = key.token("ES256", &issuer.claims_at(&format!("{}{path}", issuer.url)));
        let found = reviewed(&server, &token).await.expect_err("nobody");
        assert!(
            found.contains("oidc: could not expand distributed claims: ") && found.contains(said),
            "{said}: {found}"
        );
        assert_eq!(who(&server, &token).await, Err(Attempted("attempted: bearer")), "{said}");
    }
    for (endpoint, said) in [
        (issuer.url.replace("https", "http") + SOURCE, "must begin with https://"),
        ("https://169.254.169.254/latest".into(), "address not allowed"),
    ] {
        let found = reviewed(&server, &key.token("ES256", &issuer.claims_at(&endpoint))).await.expect_err("nobody");
        assert!(found.contains(said), "{endpoint}: {found}");
    }
    // Whoever signs tokens themselves has nobody asked.
    assert!(reviewed(&server, &stranger.token("ES256", &issuer.claims_elsewhere())).await.is_err());
    assert_eq!(issuer.n_asked(), 0);
}

/// A watch goes on for a while where its token's source is only down.
#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_is_down_takes_nothing_back() {
    let issuer = Issuer::start().await;
    let key = Signer::curve("c");
    issuer.signs_with(&[&key]);
    let server = running(&issuer.configuration(BY_CLAIM)).await;
    for (path, head, is_certain) in [
        ("/busy", "429 Too Many Requests", false),
        ("/broken", "503 Service Unavailable", false),
        ("/gone", "404 Not Found", true),
        ("/empty", "200 OK", true),
    ] {
        issuer.answer(path, head, "");
        let token = key.token("ES256", &issuer.claims_at(&format!("{}{path}", issuer.url)));
        assert!(reviewed(&server, &token).await.is_err(), "{path}");
        let access = &server.access;
        let found = access.authenticator().holder(&access.look(), &token, &[ISSUER], None).await;
        assert_eq!(found.expect_err("nobody").is_certain, is_certain, "{path}");
    }
}
