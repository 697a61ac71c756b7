//! Whether a Service's addresses, their families and the policy for both agree.

use std::collections::BTreeSet;

use corten_schema::Cursor;
use corten_validation::rules::address;

use super::needs;

const FAMILIES: [&str; 2] = ["IPv4", "IPv6"];
const POLICIES: [&str; 3] = ["PreferDualStack", "RequireDualStack", "SingleStack"];

pub(super) fn validate(service: Cursor<'_>) {
    let spec = service.at("spec");
    if spec.at("type").str() == "ExternalName" {
        return;
    }
    let (one, all, families) = (spec.at("clusterIP"), spec.at("clusterIPs"), spec.at("ipFamilies"));
    agree(one, all);
    let mut seen = BTreeSet::new();
    for family in families.each() {
        family.one_of(&FAMILIES);
        if seen.contains(family.str()) {
            family.duplicate();
        }
        seen.insert(family.str());
    }
    if spec.at("ipFamilyPolicy").exists() {
        spec.at("ipFamilyPolicy").one_of(&POLICIES);
    }
    if !addresses(all) {
        return;
    }
    if all.items().len() > 1 {
        let v6 = all.each().filter(|it| address::is_v6(it.str())).count();
        if v6 != 1 || all.items().len() != 2 {
            all.invalid("may specify no more than one IP for each IP family");
        }
    }
    if !needs::is_headless(service.value()) {
        for (at, (ip, family)) in all.each().zip(families.each()).enumerate() {
            match (family.str(), address::is_v6(ip.str())) {
                ("IPv4", true) => {
                    ip.invalid(&format!("expected an IPv4 value as indicated by `ipFamilies[{at}]`"));
                }
                ("IPv6", false) => {
                    ip.invalid(&format!("expected an IPv6 value as indicated by `ipFamilies[{at}]`"));
                }
                _ => {}
            }
        }
    }
}

/// The old field is the first of the new one.
fn agree(one: Cursor<'_>, all: Cursor<'_>) {
    let first = all.items().first();
    match (one.is_empty(), first) {
        (false, None) => all.missing(""),
        (false, Some(first)) if first != one.value() => all.invalid("first value must match `clusterIP`"),
        (true, Some(_)) => all.invalid("must be empty when `clusterIP` is not specified"),
        _ => {}
    }
}

/// False where what follows could only confuse.
fn addresses(all: Cursor<'_>) -> bool {
    let mut valid = true;
    for (at, ip) in all.each().enumerate() {
        if at == 0 && ip.str() == "None" {
            if all.items().len() > 1 {
                all.invalid("'None' must be the first and only value");
                valid = false;
            }
            continue;
        }
        valid &= address::address(ip);
    }
    if all.items().len() > 2 {
        all.invalid("may only hold up to 2 values");
    }
    valid
}
