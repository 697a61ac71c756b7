//! How a webhook is reached, as webhook configurations and custom resource definitions say it: a URL or a Service.

use corten_meta::field;
use corten_schema::Cursor;

const FORM: &str = "; desired format: https://host[/path]";

/// `WebhookClientConfig`.
pub(crate) fn validate(config: Cursor<'_>) {
    let (url, service) = (config.at("url"), config.at("service"));
    if url.exists() == service.exists() {
        config.missing("exactly one of url or service is required");
    } else if url.exists() {
        self::url(url);
    } else {
        self::service(service);
    }
}

fn url(url: Cursor<'_>) {
    let text = url.str();
    let (rest, fragment) = text.split_once('#').unwrap_or((text, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (scheme, rest) = rest.split_once(':').unwrap_or(("", rest));
    let authority = rest.strip_prefix("//").map_or("", |it| it.split('/').next().unwrap_or_default());
    let (user, host) = authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
    if scheme != "https" {
        url.invalid_as(scheme, &format!("'https' is the only allowed URL scheme{FORM}"));
    }
    if host.is_empty() {
        url.invalid_as(host, &format!("host must be specified{FORM}"));
    }
    if let Some(user) = user {
        url.invalid_as(user, "user information is not permitted in the URL");
    }
    if !fragment.is_empty() {
        url.invalid_as(fragment, "fragments are not permitted in the URL");
    }
    if !query.is_empty() {
        url.invalid_as(query, "query parameters are not permitted in the URL");
    }
}

fn service(service: Cursor<'_>) {
    let (name, namespace, port) = (service.at("name"), service.at("namespace"), service.at("port"));
    // Who calls `ValidateWebhookService` gives it both the other way round, so the one that is there is named.
    if namespace.is_empty() {
        name.missing("");
    }
    if name.is_empty() {
        namespace.missing("");
    }
    if port.exists() && !(1..=65535).contains(&port.int()) {
        port.invalid("port is not valid: must be between 1 and 65535, inclusive");
    }
    path(service.at("path"));
}

fn path(path: Cursor<'_>) {
    let text = path.str();
    if matches!(text, "" | "/") {
        return;
    }
    if text == "//" {
        return path.invalid("segment[0] may not be empty");
    }
    let Some(rest) = text.strip_prefix('/') else { return path.invalid("must start with a '/'") };
    for (at, segment) in rest.strip_suffix('/').unwrap_or(rest).split('/').enumerate() {
        if segment.is_empty() {
            path.invalid(&format!("segment[{at}] may not be empty"));
            continue;
        }
        for reason in field::dns1123_subdomain(segment) {
            path.invalid(&format!("segment[{at}]: {reason}"));
        }
    }
}
