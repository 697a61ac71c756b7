use http::{HeaderMap, HeaderValue};

use super::{Links, Page, cleaned, headers};

fn links() -> Links {
    let prefix = "/api/v1/namespaces/a/pods/web/proxy".to_owned();
    Links { prefix, hosts: ["10.0.0.7:80".into(), "localhost:8001".into()] }
}

#[test]
fn links_lead_through() {
    const P: &str = "/api/v1/namespaces/a/pods/web/proxy";
    for (address, expected) in [
        ("/x", format!("{P}/x")),
        ("/", format!("{P}/")),
        ("/x/?q=1#f", format!("{P}/x/?q=1#f")),
        ("http://10.0.0.7:80/x", format!("{P}/x")),
        ("//localhost:8001/x", format!("{P}/x")),
        ("https://elsewhere/x", "https://elsewhere/x".into()),
        ("//elsewhere/x", "//elsewhere/x".into()),
        ("x", "x".into()),
        ("../x", "../x".into()),
        ("#f", "#f".into()),
        ("", String::new()),
        ("mailto:a@b", "mailto:a@b".into()),
        (&format!("{P}/there"), format!("{P}/there")),
        (&format!("http://localhost:8001{P}/there"), format!("{P}/there")),
        (&format!("{P}2/there"), format!("{P}{P}2/there")),
    ] {
        assert_eq!(links().rewritten(address), expected, "{address}");
    }
}

#[test]
fn pages_are_relinked() {
    let page = concat!(
        "<!DOCTYPE html><html><!-- <a href=\"/no\"> --><head><title><a href='/no'></title>",
        "<script src=/s.js>if (a < b) x = '<img src=\"/no\">';</script><LINK HREF='/l.css'></head>",
        "1 < 2 <a class=x href=\"/a?b=1\" title=\"a > b\">a</a><img alt='' src = /i.png /><p href='/no'>",
        "<a href='http://elsewhere/'>b</a><a href=\"rel\">c</a><a href>d</a><br/>ende <a href='/cut"
    );
    let expected = page
        .replace("=/s.js", "=P/s.js")
        .replace("'/l.css'", "'P/l.css'")
        .replace("\"/a?b=1\"", "\"P/a?b=1\"")
        .replace(" /i.png", " P/i.png")
        .replace('P', &links().prefix)
        .replace(&format!("<!DOCTY{}E", links().prefix), "<!DOCTYPE");
    for step in [1, 2, 3, 7, page.len()] {
        let (mut it, mut out) = (Page::new(links()), Vec::new());
        for part in page.as_bytes().chunks(step) {
            it.feed(part, &mut out);
        }
        it.finish(&mut out);
        assert_eq!(String::from_utf8_lossy(&out), expected, "in steps of {step}");
    }
    // A tag without an end is not waited for.
    let (mut it, mut out) = (Page::new(links()), Vec::new());
    it.feed(b"<a ", &mut out);
    it.feed(&[b'x'; 100_000], &mut out);
    assert_eq!(out.len(), 100_003);
}

#[test]
fn paths_do_not_lead_out() {
    for (path, expected) in [
        ("", "/"),
        ("/", "/"),
        ("/a", "/a"),
        ("/a/", "/a/"),
        ("//a///b", "/a/b"),
        ("/a/../b/./c", "/b/c"),
        ("/../../etc", "/etc"),
        ("/a/..", "/"),
        ("/a%2Fb", "/a%2Fb"),
    ] {
        assert_eq!(cleaned(path), expected, "{path}");
    }
}

#[test]
fn headers_of_the_connection_stay_here() {
    let mut asked = HeaderMap::new();
    for (name, value) in [
        ("connection", "close, x-hop"),
        ("x-hop", "1"),
        ("keep-alive", "5"),
        ("te", "trailers"),
        ("upgrade", "websocket"),
        ("x-forwarded-for", "192.0.2.1"),
        ("cookie", "a=b"),
        ("accept", "text/html"),
        ("accept-encoding", "gzip"),
    ] {
        asked.insert(name, HeaderValue::from_static(value));
    }
    let client = Some("192.0.2.2".parse().expect("an address"));
    let authority = "server:6443".parse().expect("an authority");
    let onward = headers::onward(&asked, Some(&authority), client, false);
    let mut found: Vec<String> =
        onward.iter().map(|(name, value)| format!("{name}={}", value.to_str().expect("text"))).collect();
    found.sort_unstable();
    assert_eq!(found, ["accept=text/html", "cookie=a=b", "host=server:6443", "x-forwarded-for=192.0.2.1, 192.0.2.2"]);

    asked.insert("connection", HeaderValue::from_static("keep-alive, Upgrade"));
    assert!(headers::wants_upgrade(&asked));
    let onward = headers::onward(&asked, None, None, true);
    assert_eq!((&onward["connection"], &onward["upgrade"]), (&"Upgrade".parse().expect("text"), &asked["upgrade"]));

    let mut answered = HeaderMap::new();
    answered.insert("access-control-allow-origin", HeaderValue::from_static("*"));
    answered.insert("x-powered-by", HeaderValue::from_static("a pod"));
    answered.insert("transfer-encoding", HeaderValue::from_static("chunked"));
    headers::homeward(&mut answered);
    assert_eq!(answered.keys().collect::<Vec<_>>(), ["x-powered-by"]);
}
