use super::*;

#[test]
fn a_token_ends_when_it_was_told_to() {
    let now: Time = "2026-11-26T10:00:00Z".parse().expect("a time");
    for (ttl, expected) in [("24h", Some("2026-11-27T10:00:00Z")), ("90s", Some("2026-11-26T10:01:30Z")), ("0", None)] {
        let expires = expiration(ttl, now).expect(ttl).map(|it| it.to_string());
        assert_eq!(expires.as_deref(), expected, "{ttl}");
    }
    assert!(expiration("tomorrow", now).is_err());
}

#[test]
fn a_token_is_listed_without_its_secret() {
    let token = BootstrapToken { id: "abcdef".into(), secret: "0123456789abcdef".into() };
    let expires: Time = "2026-11-26T10:00:00Z".parse().expect("a time");
    let mut secret = objects::secret(&token, &[], Some(expires), Some("rack 4"));
    let texts = secret["stringData"].take();
    let data = texts.as_object().into_iter().flatten();
    let data: BTreeMap<&String, String> =
        data.map(|(name, text)| (name, STANDARD.encode(text.as_str().unwrap_or_default()))).collect();
    secret["data"] = serde_json::json!(data);
    let secret: TokenSecret = serde_json::from_value(secret).expect("a Secret");
    let listed = [secret.listed().expect("a token")];
    let expected = "ID      EXPIRES               USAGES                  DESCRIPTION\n\
                    abcdef  2026-11-26T10:00:00Z  authentication,signing  rack 4\n";
    assert_eq!(table(&listed), expected);
    assert_eq!(listed[0].groups, ["system:bootstrappers:kubeadm:default-node-token"]);
}
