//! Tokens that others issue: a real issuer over TLS, which rotates its keys, hangs, redirects and lies.

mod distributed;

use std::{collections::HashMap, net::SocketAddr, sync::Arc, time::Duration};

use aws_lc_rs::{
    rand::SystemRandom,
    rsa::{KeyPair, KeySize},
    signature::{self, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use corten_cacher::watch_cache::feed;
use corten_meta::Time;
use corten_pki::Authority;
use corten_store::memory::Memory;
use corten_webhook::Clients;
use http::{HeaderMap, header};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    sync::watch,
    task::JoinSet,
    time::Instant,
};
use tokio_rustls::TlsAcceptor;

use crate::{
    Access, Issuers,
    credential::Attempted,
    identity::user_info,
    tokens::{Authenticator, StaticTokens},
};

const DISCOVERY: &str = "/.well-known/openid-configuration";
const KEYS: &str = "/keys";
/// As the server's clock stands.
const NOW: i64 = 1_800_000_000;
const PATIENCE: Duration = Duration::from_secs(20);

/// What an issuer answers, by path; a path that is not named is never answered.
type Answers = Arc<Mutex<HashMap<String, String>>>;

struct Issuer {
    url: String,
    ca: String,
    answers: Answers,
    /// The heads of all requests.
    heads: Arc<Mutex<Vec<String>>>,
    _tasks: JoinSet<()>,
}

impl Issuer {
    async fn start() -> Self {
        let authority = Authority::in_memory().expect("keys can be made");
        let credential = authority.issue_server("issuer", &["localhost".into()]).expect("a certificate");
        let tls = authority.server_config(&credential.fixed().expect("a credential")).expect("a TLS server");
        let mut tls = (*tls).clone();
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address: SocketAddr = listener.local_addr().expect("a bound address");
        let url = format!("https://localhost:{}", address.port());
        let answers = Answers::default();
        let heads = Arc::<Mutex<Vec<String>>>::default();
        let mut tasks = JoinSet::new();
        let (told, noted) = (answers.clone(), heads.clone());
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.expect("a connection");
                let (acceptor, told, noted) = (acceptor.clone(), told.clone(), noted.clone());
                connections.spawn(async move {
                    let Ok(mut stream) = acceptor.accept(stream).await else { return };
                    let (mut got, mut some) = (Vec::new(), [0; 1024]);
                    while !got.ends_with(b"\r\n\r\n") {
                        match stream.read(&mut some).await {
                            Ok(n @ 1..) => got.extend(&some[..n]),
                            _ => return,
                        }
                    }
                    let head = String::from_utf8_lossy(&got).into_owned();
                    let path = head.split(' ').nth(1).unwrap_or_default();
                    noted.lock().push(head.clone());
                    let answer = told.lock().get(path).cloned();
                    let Some(answer) = answer else { return std::future::pending().await };
                    // The client may be gone.
                    let _ = stream.write_all(answer.as_bytes()).await;
                    let _ = stream.shutdown().await;
                });
            }
        });
        let this = Self { url, ca: authority.ca_pem(), answers, heads, _tasks: tasks };
        this.describes_itself_as(&this.url.clone());
        this
    }

    fn answer(&self, path: &str, head: &str, body: &str) {
        let text = format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len());
        self.answers.lock().insert(path.into(), text);
    }

    fn describes_itself_as(&self, issuer: &str) {
        let body = json!({ "issuer": issuer, "jwks_uri": format!("{}{KEYS}", self.url) }).to_string();
        self.answer(DISCOVERY, "200 OK", &body);
    }

    fn signs_with(&self, keys: &[&Signer]) {
        let keys: Vec<Value> = keys.iter().map(|it| it.jwk()).collect();
        self.answer(KEYS, "200 OK", &json!({ "keys": keys }).to_string());
    }

    /// A configuration that trusts it.
    fn configuration(&self, rest: &str) -> String {
        let ca = self.ca.replace('\n', "\n      ");
        format!(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt:\n- issuer:\n    url: {}\n    audiences: [corten, other]\n    audienceMatchPolicy: MatchAny\n    certificateAuthority: |\n      {ca}\n{rest}",
            self.url
        )
    }

    fn claims(&self) -> Value {
        json!({ "iss": self.url, "aud": "corten", "sub": "jane", "exp": NOW + 60, "groups": ["dev"], "hd": "example.org", "jti": "t1" })
    }
}

enum Signer {
    Curve(String, EcdsaKeyPair),
    Rsa(String, Box<KeyPair>),
}

impl Signer {
    fn curve(id: &str) -> Self {
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
        let document = document.expect("a key");
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref()).expect("a key");
        Self::Curve(id.into(), pair)
    }

    fn rsa(id: &str) -> Self {
        Self::Rsa(id.into(), Box::new(KeyPair::generate(KeySize::Rsa2048).expect("a key")))
    }

    fn id(&self) -> &str {
        let (Self::Curve(id, _) | Self::Rsa(id, _)) = self;
        id
    }

    fn jwk(&self) -> Value {
        let number = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        match self {
            Self::Curve(id, pair) => {
                let point = pair.public_key().as_ref();
                json!({ "kty": "EC", "kid": id, "crv": "P-256", "x": number(&point[1..33]), "y": number(&point[33..]) })
            }
            Self::Rsa(id, pair) => {
                // PKCS #1: a sequence of two numbers, of which the first has 2048 bits behind a zero.
                let der = pair.public_key().as_ref();
                json!({ "kty": "RSA", "use": "sig", "kid": id, "n": number(&der[9..265]), "e": "AQAB" })
            }
        }
    }

    fn token(&self, algorithm: &str, claims: &Value) -> String {
        let part = |it: &Value| URL_SAFE_NO_PAD.encode(it.to_string());
        let message = format!("{}.{}", part(&json!({ "alg": algorithm, "kid": self.id() })), part(claims));
        let signature = match self {
            Self::Curve(_, pair) => {
                pair.sign(&SystemRandom::new(), message.as_bytes()).expect("a signature").as_ref().to_vec()
            }
            Self::Rsa(_, pair) => {
                let encoding: &dyn signature::RsaEncoding = match algorithm {
                    "RS256" => &signature::RSA_PKCS1_SHA256,
                    "RS384" => &signature::RSA_PKCS1_SHA384,
                    "RS512" => &signature::RSA_PKCS1_SHA512,
                    _ => &signature::RSA_PSS_SHA256,
                };
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(encoding, &SystemRandom::new(), message.as_bytes(), &mut signature).expect("a signature");
                signature
            }
        };
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

/// What a server asks, and the task that keeps the keys.
struct ServerWithIssuers {
    access: Access,
    /// What is counted.
    registry: corten_metrics::Registry,
    _tasks: JoinSet<()>,
    _ended: watch::Sender<bool>,
}

async fn running(configuration: &str) -> ServerWithIssuers {
    over(Arc::new(Issuers::parse(configuration).expect("a good configuration"))).await
}

async fn over(issuers: Arc<Issuers>) -> ServerWithIssuers {
    let (caches, _) = feed::fill(&Memory::new()).await.expect("an empty store");
    let caches = Arc::new(caches);
    let pki = Arc::new(Authority::in_memory().expect("keys can be made"));
    let known = StaticTokens::parse("s3cret,jane,u1").expect("a good file");
    let mut tasks = JoinSet::new();
    let ended = watch::Sender::new(false);
    let clients = Arc::new(Clients::new(caches.clone()));
    tasks.spawn(issuers.clone().keep(clients.clone(), ended.subscribe()));
    let clock = Arc::new(|| Time::from_unix_seconds(NOW));
    let registry = corten_metrics::Registry::new();
    ServerWithIssuers {
        access: Access::new(
            caches,
            clock,
            Authenticator::new(pki, known, issuers),
            crate::AuthorizationSettings::default(),
            clients,
            &registry,
        ),
        registry,
        _tasks: tasks,
        _ended: ended,
    }
}

/// Who somebody is who shows this token, where it proves anything.
async fn who(server: &ServerWithIssuers, token: &str) -> Result<Value, Attempted> {
    let mut headers = HeaderMap::new();
    headers.insert(header::AUTHORIZATION, format!("Bearer {token}").parse().expect("a header"));
    server.access.identify(None, &headers, "/version").await.map(|it| user_info(&it.identity))
}

async fn lets_in_strangers(server: &ServerWithIssuers, path: &str) -> bool {
    server.access.identify(None, &HeaderMap::new(), path).await.is_ok()
}

const MAPPED: &str = "  claimMappings:
    username: {claim: sub, prefix: 'oidc:'}
    groups: {expression: 'claims.?groups.orValue([]).map(it, \"oidc:\" + it)'}
    uid: {claim: sub}
    extra: [{key: example.org/domain, valueExpression: claims.hd}]
  claimValidationRules:
  - {claim: hd, requiredValue: example.org}
  - {expression: 'claims.sub != \"mallory\"', message: not her}
  userValidationRules:
  - {expression: '!user.groups.exists(it, it.startsWith(\"system:\")) && !user.username.startsWith(\"system:\")'}
";

#[tokio::test(flavor = "multi_thread")]
async fn tokens_of_an_issuer_name_users() {
    let issuer = Issuer::start().await;
    let (curve, rsa, stranger) = (Signer::curve("c"), Signer::rsa("r"), Signer::curve("c"));
    issuer.signs_with(&[&curve, &rsa]);
    let server = running(&issuer.configuration(MAPPED)).await;
    let jane = json!({
        "username": "oidc:jane",
        "uid": "jane",
        "groups": ["oidc:dev", "system:authenticated"],
        "extra": { "authentication.kubernetes.io/credential-id": ["JTI=t1"], "example.org/domain": ["example.org"] },
    });
    for (signer, algorithm) in [(&curve, "ES256"), (&rsa, "RS256"), (&rsa, "RS384"), (&rsa, "RS512"), (&rsa, "PS256")] {
        let found = who(&server, &signer.token(algorithm, &issuer.claims())).await;
        assert_eq!(found.as_ref(), Ok(&jane), "{algorithm}");
    }
    for (what, name, value, is_good) in [
        ("one of several audiences", "aud", json!(["x", "other"]), true),
        ("another audience", "aud", json!(["x"]), false),
        ("over", "exp", json!(NOW - 1), false),
        ("without an end", "exp", json!(null), false),
        ("not yet", "nbf", json!(NOW + 301), false),
        ("nearly", "nbf", json!(NOW + 299), true),
        ("from a time that is none", "nbf", json!("tomorrow"), false),
        ("from no time", "nbf", json!(null), true),
        ("another issuer", "iss", json!("https://issuer.example"), false),
        ("another domain", "hd", json!("example.com"), false),
        ("no domain", "hd", json!(null), false),
        ("who must not", "sub", json!("mallory"), false),
        ("nobody", "sub", json!(""), false),
        ("a number", "sub", json!(7), false),
        ("no groups", "groups", json!([]), true),
        ("groups that are none", "groups", json!(7), false),
    ] {
        let mut claims = issuer.claims();
        claims[name] = value;
        let found = who(&server, &curve.token("ES256", &claims)).await;
        assert_eq!(found.is_ok(), is_good, "{what}: {found:?}");
    }
    for (what, token) in [
        ("another's key", stranger.token("ES256", &issuer.claims())),
        (
            "another algorithm",
            rsa.token("RS256", &issuer.claims()).replacen(
                &URL_SAFE_NO_PAD.encode(r#"{"alg":"RS256","kid":"r"}"#),
                &URL_SAFE_NO_PAD.encode(r#"{"alg":"none","kid":"r"}"#),
                1,
            ),
        ),
    ] {
        assert_eq!(who(&server, &token).await, Err(Attempted("attempted: bearer")), "{what}");
    }
    assert!(who(&server, "s3cret").await.is_ok(), "other tokens go on");
    let counted = corten_metrics::encoded(&server.registry.gather());
    // Of those of the lists above; what another issuer has made is not looked at.
    for (result, n) in [("success", 5 + 4), ("failure", 11 + 2)] {
        let line = counted.lines().find(|it| {
            it.starts_with("apiserver_authentication_jwt_authenticator_latency_seconds_count{jwt_issuer_hash=\"sha256:")
                && it.contains(&format!("result=\"{result}\""))
        });
        assert!(line.is_some_and(|it| it.ends_with(&format!("}} {n}"))), "{result}: {line:?}");
    }
}

/// An expression over a claim that its holder chose: what takes too long lets nobody in.
#[tokio::test(flavor = "multi_thread")]
async fn the_expressions_of_an_issuer_have_a_budget_of_work() {
    let issuer = Issuer::start().await;
    let key = Signer::curve("c");
    issuer.signs_with(&[&key]);
    let rest = r#"  claimMappings: {username: {claim: sub, prefix: ""}}
  claimValidationRules:
  - {expression: '!claims.?nick.orValue("-").matches("\\pL{25}a{5}")'}
"#;
    let server = running(&issuer.configuration(rest)).await;
    for (n_letters, is_good) in [(10, true), (2_000, false)] {
        let mut claims = issuer.claims();
        claims["nick"] = "b".repeat(n_letters).into();
        let found = who(&server, &key.token("ES256", &claims)).await;
        assert_eq!(found.is_ok(), is_good, "{n_letters} letters: {found:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_key_is_fetched_for_the_first_token_it_signs() {
    let issuer = Issuer::start().await;
    let (old, new) = (Signer::curve("old"), Signer::curve("new"));
    issuer.signs_with(&[&old]);
    let server = running(&issuer.configuration(MAPPED)).await;
    assert!(who(&server, &old.token("ES256", &issuer.claims())).await.is_ok());
    issuer.signs_with(&[&new]);
    assert!(who(&server, &new.token("ES256", &issuer.claims())).await.is_ok());
    assert!(who(&server, &old.token("ES256", &issuer.claims())).await.is_err(), "what was withdrawn signs nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_review_waits_for_the_key_of_a_token_as_its_holder_would() {
    let issuer = Issuer::start().await;
    let (old, new) = (Signer::curve("old"), Signer::curve("new"));
    issuer.signs_with(&[&old]);
    let server = running(&issuer.configuration(MAPPED)).await;
    assert!(who(&server, &old.token("ES256", &issuer.claims())).await.is_ok());
    issuer.signs_with(&[&new]);
    let spec = json!({ "token": new.token("ES256", &issuer.claims()) });
    let status = server.access.review_token(&spec).await.expect("there is a token");
    assert_eq!(status["authenticated"], true, "{status}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_issuer_that_hangs_redirects_or_lies_lets_nobody_in_and_holds_nobody_up() {
    let good = Signer::curve("c");
    for what in ["hangs", "redirects", "lies", "floods"] {
        let issuer = Issuer::start().await;
        issuer.signs_with(&[&good]);
        match what {
            "hangs" => drop(issuer.answers.lock().remove(DISCOVERY)),
            "redirects" => issuer.answer(DISCOVERY, &format!("302 Found\r\nLocation: {}/other", issuer.url), ""),
            "lies" => issuer.describes_itself_as("https://issuer.example"),
            _ => issuer.answer(KEYS, "200 OK", &" ".repeat(2 << 20)),
        }
        let server = Arc::new(running(&issuer.configuration(MAPPED)).await);
        let token = good.token("ES256", &issuer.claims());
        let (asked, begun) = (server.clone(), Instant::now());
        let waiting = tokio::spawn(async move { who(&asked, &token).await });
        assert!(who(&server, "s3cret").await.is_ok());
        let found = tokio::time::timeout(PATIENCE, waiting).await.expect("in time").expect("no panic");
        assert_eq!(found, Err(Attempted("attempted: bearer")), "{what}");
        assert!(begun.elapsed() < Duration::from_secs(8), "{what}: {:?}", begun.elapsed());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_issuer_whose_keys_cannot_be_read_is_named_until_they_are() {
    let (good, issuer) = (Signer::curve("c"), Issuer::start().await);
    issuer.signs_with(&[&good]);
    issuer.describes_itself_as("https://issuer.example");
    let server = running(&issuer.configuration(MAPPED)).await;
    until(|| !server.access.unanswering().is_empty()).await;
    let unanswering = server.access.unanswering();
    assert_eq!(unanswering[0].who, format!("the issuer {:?}", issuer.url));
    let reason = &unanswering[0].reason;
    assert!(
        reason.contains("did not match the issuer URL") && reason.ends_with("; its tokens are refused"),
        "{reason}"
    );
    let fetch = || server.access.authenticator().issuers().key_fetches().remove(0);
    let failed = fetch();
    assert!(failed.since_failure.is_some() && failed.since_success.is_none() && failed.key_set.is_none(), "{failed:?}");
    issuer.describes_itself_as(&issuer.url.clone());
    // Whoever shows a token is a reason to ask again.
    let _ = who(&server, &good.token("ES256", &issuer.claims())).await;
    until(|| server.access.unanswering().is_empty()).await;
    let read = fetch();
    assert!(read.since_success.is_some() && read.key_set.is_some_and(|it| it.starts_with("sha256:")));
    issuer.describes_itself_as("https://issuer.example");
    let _ = who(&server, &Signer::curve("d").token("ES256", &issuer.claims())).await;
    until(|| !server.access.unanswering().is_empty()).await;
    assert!(server.access.unanswering()[0].reason.ends_with("; the keys that it had are still used"));
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_come_as_far_as_the_configuration_lets_them() {
    let head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n";
    for (anonymous, healthz, version) in [
        ("", true, true),
        ("anonymous: {enabled: true}\n", true, true),
        ("anonymous: {enabled: true, conditions: [{path: /healthz}]}\n", true, false),
        ("anonymous: {enabled: false}\n", false, false),
    ] {
        let server = running(&format!("{head}{anonymous}")).await;
        let found = (lets_in_strangers(&server, "/healthz").await, lets_in_strangers(&server, "/version").await);
        assert_eq!(found, (healthz, version), "{anonymous}");
        assert!(who(&server, "s3cret").await.is_ok());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_file_is_read_again_and_a_bad_one_changes_nothing() {
    let issuer = Issuer::start().await;
    let signer = Signer::curve("c");
    issuer.signs_with(&[&signer]);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("authentication.yaml");
    std::fs::write(&file, issuer.configuration(MAPPED)).expect("a file");
    let issuers = Arc::new(Issuers::load(&file).expect("a good configuration"));
    let server = over(issuers.clone()).await;
    let token = signer.token("ES256", &issuer.claims());
    let name = async || who(&server, &token).await.map(|it| it["username"].clone());
    assert_eq!(name().await, Ok(json!("oidc:jane")));

    std::fs::write(&file, "kind: nonsense").expect("a file");
    until(|| issuers.reloads().failures() == 1).await;
    assert_eq!(name().await, Ok(json!("oidc:jane")), "the old one stays");
    assert_eq!(issuers.refused().map(|it| it.path).as_ref(), Some(&file));

    std::fs::write(&file, issuer.configuration(&MAPPED.replace("'oidc:'", "'sso:'"))).expect("a file");
    until(|| issuers.reloads().successes() == 1).await;
    // At once: the keys are those of before.
    assert_eq!(name().await, Ok(json!("sso:jane")));
    assert_eq!(issuers.reloads().failures(), 1);
    assert!(issuers.refused().is_none());
}

async fn until(holds: impl Fn() -> bool) {
    let looking = async {
        let mut looks = tokio::time::interval(Duration::from_millis(20));
        while !holds() {
            looks.tick().await;
        }
    };
    tokio::time::timeout(PATIENCE, looking).await.expect("in time");
}
