//! An emptyDir of huge pages: of which size they are (`getPageSizeMountOption`).

use std::collections::{BTreeMap, BTreeSet};

use corten_api::core::v1::Pod;
use corten_meta::Quantity;

use crate::spec::pod::all_containers;

const MEDIUM: &str = "HugePages";

pub(crate) fn is_of_huge_pages(medium: &str) -> bool {
    medium == MEDIUM || medium.strip_prefix("HugePages-").is_some_and(|it| bytes(it).is_some())
}

/// The bytes of one page of this medium, for this pod. It asks for such pages, or there are none to be had.
pub(crate) fn page_bytes(medium: &str, pod: &Pod) -> Result<u64, String> {
    let lists = all_containers(pod).filter_map(|it| it.resources.as_ref());
    let names = lists.flat_map(|it| [&it.requests, &it.limits]).flatten().flat_map(BTreeMap::keys);
    let asked: BTreeSet<u64> = names.filter_map(|it| bytes(it.strip_prefix("hugepages-")?)).collect();
    let Some(size) = medium.strip_prefix("HugePages-") else {
        return match asked.len() {
            1 => Ok(asked.into_iter().next().unwrap_or_default()),
            0 => Err(format!("medium {medium} can't be used if no container requests huge pages")),
            _ => Err(format!("medium {medium} can't be used if container requests multiple huge page sizes")),
        };
    };
    let size = bytes(size).filter(|it| asked.contains(it));
    size.ok_or_else(|| format!("medium {medium} can't be used if no container requests huge pages of this size"))
}

fn bytes(size: &str) -> Option<u64> {
    let bytes = size.parse::<Quantity>().ok()?.value();
    u64::try_from(bytes).ok().filter(|it| *it > 0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pages_of_the_size_that_is_asked_for() {
        let pod = |sizes: &[&str]| -> Pod {
            let limits: BTreeMap<String, &str> = sizes.iter().map(|it| (format!("hugepages-{it}"), "1Gi")).collect();
            serde_json::from_value(json!({"spec": {"containers": [{"name": "c", "resources": {"limits": limits}}]}}))
                .expect("a pod")
        };
        let (mi, gi) = (2 << 20, 1 << 30);
        for (medium, sizes, expected) in [
            ("HugePages", &["2Mi"][..], Ok(mi)),
            ("HugePages-2Mi", &["1Gi", "2Mi"], Ok(mi)),
            ("HugePages-1Gi", &["1Gi"], Ok(gi)),
            (
                "HugePages",
                &["1Gi", "2Mi"],
                Err("medium HugePages can't be used if container requests multiple huge page sizes"),
            ),
            ("HugePages", &[], Err("medium HugePages can't be used if no container requests huge pages")),
            (
                "HugePages-1Gi",
                &["2Mi"],
                Err("medium HugePages-1Gi can't be used if no container requests huge pages of this size"),
            ),
        ] {
            assert_eq!(page_bytes(medium, &pod(sizes)), expected.map_err(str::to_owned), "{medium} {sizes:?}");
        }
        assert!(!is_of_huge_pages("Huge") && !is_of_huge_pages("HugePages-") && is_of_huge_pages("HugePages-1Gi"));
    }
}
