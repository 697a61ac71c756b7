use super::*;
use corten_kinds::Kinds;

fn read(method: &str, address: &str) -> RequestInfo {
    let (path, query) = address.split_once('?').map_or((address, None), |(path, query)| (path, Some(query)));
    RequestInfo::read(&Kinds::default(), method, path, query).expect("a path that can be read")
}

/// `get pods a b log`: the verb, and then what it is asked of; a dash for what is empty.
fn words(info: &RequestInfo) -> String {
    let or_dash = |it: &str| if it.is_empty() { "-".to_owned() } else { it.to_owned() };
    [info.verb, &info.plural, &info.namespace, &info.name, &info.subresource].map(or_dash).join(" ")
}

fn outcome(info: &RequestInfo) -> &'static str {
    match info.route {
        Route::NonResource => "path",
        Route::UnknownResource => "unknown",
        Route::Aggregated { is_resource: true } => "aggregated",
        Route::Aggregated { is_resource: false } => "aggregated path",
        Route::NoSuchPath(_) => "404",
        Route::NoSuchMethod(_) => "405",
        Route::Collection(..) => "collection",
        Route::Object(..) => "object",
        Route::Subresource(..) => "subresource",
    }
}

#[test]
fn reads_paths() {
    for (method, address, expected) in [
        ("GET", "/healthz", "path get - - - -"),
        ("GET", "/apis/apps/v1", "path get - - - -"),
        ("GET", "/apis/apps/v1/", "path get - - - -"),
        ("GET", "/", "path get - - - -"),
        ("OPTIONS", "*", "path options - - - -"),
        ("CONNECT", "", "path - - - - -"),
        ("GET", "api/v1/pods", "path get - - - -"),
        ("GET", "/api/v1/pods", "collection list pods - - -"),
        ("GET", "/api/v1/pods/", "collection list pods - - -"),
        ("GET", "/api/v1/pods?watch=true", "collection watch pods - - -"),
        ("GET", "/api/v1/watch/pods", "collection watch pods - - -"),
        ("GET", "/api/v1/watch/namespaces/a/pods", "collection watch pods a - -"),
        ("GET", "/api/v1/watch/namespaces/a/pods/b", "object watch pods a b -"),
        ("GET", "/api/v1/w%61tch/namespaces/a/secrets/b", "object watch secrets a b -"),
        ("POST", "/api/v1/watch/namespaces/a/pods", "405 watch pods a - -"),
        ("DELETE", "/api/v1/watch/namespaces/a/pods/b", "405 watch pods a b -"),
        ("GET", "/api/v1/watch/namespaces/a/pods/b/log", "404 watch pods a b log"),
        ("GET", "/api/v1/watch", "unknown list watch - - -"),
        ("GET", "/api/v1/namespaces/a/pods/b", "object get pods a b -"),
        ("GET", "/api/v1/namespaces/a/pods/b?watch=true", "object get pods a b -"),
        ("GET", "/api/v1/namespaces/a/pods?fieldSelector=metadata.name%3Db", "collection list pods a b -"),
        ("GET", "/api/v1/namespaces?fieldSelector=metadata.name=b", "collection list namespaces - b -"),
        ("POST", "/api/v1/namespaces/a/pods", "collection create pods a - -"),
        ("POST", "/api/v1/namespaces/a/pods/b", "405 create pods a b -"),
        ("POST", "/api/v1/pods", "405 create pods - - -"),
        ("DELETE", "/api/v1/pods", "405 deletecollection pods - - -"),
        ("GET", "/api/v1/pods/b", "404 get pods - b -"),
        ("GET", "/api/v1/pods/b/log", "404 get pods - b log"),
        ("POST", "/api/v1/namespaces/a/pods/b/binding", "subresource create pods a b binding"),
        ("GET", "/api/v1/namespaces/a/pods/b/binding", "405 get pods a b binding"),
        ("DELETE", "/api/v1/namespaces/a/pods/b/log", "405 delete pods a b log"),
        ("GET", "/api/v1/namespaces/a/pods/b/log/c", "404 get pods a b log"),
        ("GET", "/api/v1/namespaces/a/pods/b/logs", "404 get pods a b logs"),
        ("GET", "/api/v1/namespaces/a", "object get namespaces a a -"),
        ("PUT", "/api/v1/namespaces/a/finalize", "subresource update namespaces a a finalize"),
        ("PUT", "/api/v1/namespaces/a/finalize/b", "404 update namespaces a a finalize"),
        ("GET", "/api/v1/namespaces/a/namespaces", "404 list namespaces a - -"),
        ("GET", "/api/v1/namespaces/a/namespaces/b", "404 get namespaces a b -"),
        ("PUT", "/api/v1/namespaces/a/namespaces/b/finalize", "404 update namespaces a b finalize"),
        ("GET", "/api/v1/namespaces/a/nodes/b", "404 get nodes a b -"),
        ("GET", "/api/v1/namespaces/a/nodes/b/proxy/x", "404 get nodes a b proxy"),
        ("GET", "/api/v1/namespaces/a/componentstatuses", "404 list componentstatuses a - -"),
        ("GET", "/apis/metrics.k8s.io/v1beta1/namespaces/a/nodes", "404 list nodes a - -"),
        (
            "POST",
            "/apis/authorization.k8s.io/v1/namespaces/a/subjectaccessreviews",
            "404 create subjectaccessreviews a - -",
        ),
        ("POST", "/apis/authentication.k8s.io/v1/namespaces/a/tokenreviews", "404 create tokenreviews a - -"),
        (
            "POST",
            "/apis/authorization.k8s.io/v1/localsubjectaccessreviews",
            "404 create localsubjectaccessreviews - - -",
        ),
        (
            "POST",
            "/apis/authorization.k8s.io/v1/namespaces/a/localsubjectaccessreviews",
            "collection create localsubjectaccessreviews a - -",
        ),
        ("GET", "/apis/corten.dev/v1/journals/pods.b", "404 get journals - pods.b -"),
        ("GET", "/apis/corten.dev/v1/namespaces/a/journals", "collection list journals a - -"),
        ("DELETE", "/apis/apps/v1/namespaces/a/deployments", "collection deletecollection deployments a - -"),
        ("PATCH", "/apis/apps/v1/namespaces/a/deployments/b/scale", "subresource patch deployments a b scale"),
        ("GET", "/apis/apps/v1/namespaces/a/pods", "unknown list pods a - -"),
        ("GET", "/api/v1/namespaces//pods", "path get - - - -"),
        ("GET", "//api/v1/pods", "path get - - - -"),
        ("GET", "/api/v1/namespaces/a//pods/b", "path get - - - -"),
        (
            "GET",
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode",
            "object get clusterroles - system:node -",
        ),
        ("OPTIONS", "/api/v1/namespaces/a/pods/b", "405 - pods a b -"),
        ("OPTIONS", "/api/v1/namespaces/a/pods/b/proxy/x", "subresource - pods a b proxy"),
    ] {
        let info = read(method, address);
        assert_eq!(format!("{} {}", outcome(&info), words(&info)), expected, "{method} {address}");
    }
}

#[test]
fn paths_of_other_servers_are_read_without_their_table() {
    for (method, address, expected) in [
        ("GET", "/apis/a.example/v1", "aggregated path get - - - -"),
        ("GET", "/apis/a.example/v1/", "aggregated path get - - - -"),
        ("GET", "/apis/a.example", "path get - - - -"),
        ("GET", "/apis/a.example/v2", "path get - - - -"),
        ("GET", "/apis/a.example/v2/foos", "unknown list foos - - -"),
        ("GET", "/apis/a.example/v1/foos", "aggregated list foos - - -"),
        ("GET", "/apis/a.example/v1/foos?watch=1&fieldSelector=metadata.name%3Db", "aggregated watch foos - b -"),
        ("GET", "/apis/a.example/v1/watch/namespaces/n/foos", "aggregated watch foos n - -"),
        ("POST", "/apis/a.example/v1/namespaces/n/foos", "aggregated create foos n - -"),
        ("DELETE", "/apis/a.example/v1/namespaces/n/foos", "aggregated deletecollection foos n - -"),
        ("DELETE", "/apis/a.example/v1/namespaces/n/foos/b", "aggregated delete foos n b -"),
        ("PATCH", "/apis/a.example/v1/namespaces/n/foos/b/status", "aggregated patch foos n b status"),
        ("GET", "/apis/a.example/v1/namespaces/n/foos/b/metric/c/d", "aggregated get foos n b metric"),
        ("GET", "/apis/a.example/v1/foos//b", "path get - - - -"),
        ("GET", "/apis/a.example/v1//foos", "path get - - - -"),
        ("GET", "/apis/a.example/v1/foos/../secrets", "unknown get foos - .. secrets"),
        ("GET", "/apis/a.example/v1/foos/%2e%2e/secrets", "unknown get foos - .. secrets"),
    ] {
        let (path, query) = address.split_once('?').map_or((address, None), |(path, query)| (path, Some(query)));
        let is_aggregated = |group: &str, version: &str| (group, version) == ("a.example", "v1");
        let info = RequestInfo::read_beside(&Kinds::default(), &is_aggregated, method, path, query);
        let info = info.expect("a path that can be read");
        assert_eq!(format!("{} {}", outcome(&info), words(&info)), expected, "{method} {address}");
    }
}

#[test]
fn what_is_no_path_is_refused() {
    for (path, expected) in [
        ("/api/v1/namespaces/a%2fb/pods", BadPath::EncodedSlash),
        ("/api/v1%2Fpods", BadPath::EncodedSlash),
        ("/%ff", BadPath::NotUtf8),
    ] {
        assert_eq!(RequestInfo::read(&Kinds::default(), "GET", path, None).err(), Some(expected), "{path}");
    }
}

#[test]
fn what_is_proxied_is_left_as_it_is() {
    for (path, expected) in [
        ("/api/v1/nodes/n1/proxy", Some("")),
        ("/api/v1/nodes/n1/proxy/", Some("/")),
        ("/api/v1/nodes/n1/pr%6Fxy/a%2fb", Some("/a%2fb")),
        ("/api/v1/namespaces/a/pods/http:web:80/proxy/x//y%2Fz/proxy/", Some("/x//y%2Fz/proxy/")),
        ("/api/v1/namespaces/a/services/s/proxy/%ff", Some("/%ff")),
        ("/api/v1/namespaces/a/configmaps/c/proxy/x", None),
        ("/api/v1/namespaces/proxy/pods/proxy", None),
        ("/api/v1/nodes//proxy/x", None),
        ("/apis/v1/nodes/n1/proxy/x", None),
    ] {
        let info = read("GET", path);
        assert_eq!(info.proxied.as_deref(), expected, "{path}");
        assert_eq!(info.route.subresource() == Some(Subresource::Proxy), expected.is_some(), "{path}");
    }
}

/// Each path of the table, with names in it, leads to where the table says, and every other verb nowhere.
#[test]
fn every_pattern_is_found_again() {
    let mut n_found = 0;
    for pattern in patterns() {
        let path = pattern.path().replace("{namespace}", "a").replace("{name}", "b");
        let is_watched = path.contains("/watch/");
        for (method, query) in
            [("GET", ""), ("GET", "?watch=1"), ("POST", ""), ("PUT", ""), ("PATCH", ""), ("DELETE", "")]
        {
            let info = read(method, &format!("{path}{query}"));
            let verb = pattern.verbs().find(|it| it.as_str() == info.verb).filter(|_| !is_watched || method == "GET");
            let name = format!("{method} {path}{query}");
            assert_eq!(info.kind().map(|it| &it.resource), Some(&pattern.kind.resource), "{name}");
            match (info.route.clone(), pattern.place) {
                (Route::NoSuchMethod(_), _) => assert_eq!(verb, None, "{name}"),
                (Route::Subresource(_, found, of), PathForm::Subresource(subresource)) => {
                    assert_eq!((found, of), (subresource, verb), "{name}");
                }
                (Route::Object(_, of), PathForm::Object | PathForm::WatchObject) => {
                    assert_eq!(Some(of), verb, "{name}")
                }
                (
                    Route::Collection(_, of),
                    PathForm::AllNamespaces
                    | PathForm::Collection
                    | PathForm::WatchAllNamespaces
                    | PathForm::WatchCollection,
                ) => assert_eq!(Some(of), verb, "{name}"),
                _ => panic!("{name} leads to {}", outcome(&info)),
            }
            n_found += usize::from(verb.is_some());
        }
    }
    assert!(n_found > 1000, "{n_found}");
}

#[test]
fn the_canonical_path_means_the_same() {
    for pattern in patterns() {
        let path = pattern.path().replace("{namespace}", "a%62").replace("{name}", "%63%25%20x");
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
            let info = read(method, &path);
            let again = read(method, &info.canonical_path());
            assert_eq!(words(&again), words(&info), "{method} {path}");
            assert_eq!(outcome(&again), outcome(&info), "{method} {path}");
        }
    }
}
