use serde_json::json;

use super::*;
use crate::projections::EndpointSlice;

/// Numbers from a seed (a linear congruential generator).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

fn slice(name: usize, endpoints: &[Endpoint]) -> EndpointSlice {
    let object = json!({"metadata": {"name": name.to_string()}, "endpoints": endpoints});
    serde_json::from_value(object).expect("a slice")
}

fn endpoint(numbers: &mut Numbers, n_zones: u64) -> Endpoint {
    let endpoint = json!({
        "conditions": {"ready": numbers.below(10) > 0},
        // Of a zone more than count, too.
        "zone": format!("z{}", numbers.below(n_zones + 1)),
    });
    serde_json::from_value(endpoint).expect("an endpoint")
}

/// What is stored after one look, and whether anything was written.
fn looked(stored: &[EndpointSlice], zones: &Zones) -> (Vec<EndpointSlice>, bool) {
    let mut slices: Vec<Slice<'_>> = stored.iter().map(Slice::as_it_is).collect();
    let _ = hint(&mut slices, Some(zones));
    let written = slices.iter().any(|it| it.is_changed);
    (slices.iter().enumerate().map(|(n, it)| slice(n, &it.endpoints)).collect(), written)
}

/// Whatever the zones and endpoints, and whatever they were before: a second look writes nothing, and every ready endpoint is
/// hinted or none.
#[test]
fn one_look_is_enough() {
    for seed in 0..2_000 {
        let mut numbers = Numbers(seed);
        let n_zones = 2 + numbers.below(4);
        let mut zones = || {
            let cpu: BTreeMap<String, i128> =
                (0..n_zones).map(|it| (format!("z{it}"), i128::from(1_000 * (1 + numbers.below(8))))).collect();
            Zones { total: cpu.values().sum(), cpu }
        };
        let (first, second) = (zones(), zones());
        let n_slices = 1 + usize::try_from(numbers.below(4)).expect("few");
        let mut stored: Vec<EndpointSlice> = Vec::new();
        for n in 0..n_slices {
            let endpoints: Vec<Endpoint> = (0..numbers.below(30)).map(|_| endpoint(&mut numbers, n_zones)).collect();
            stored.push(slice(n, &endpoints));
        }
        for zones in [&first, &second] {
            stored = looked(&stored, zones).0;
            let (again, is_written) = looked(&stored, zones);
            assert!(!is_written, "seed {seed}: {:?}", again.iter().map(|it| &it.endpoints).collect::<Vec<_>>());
            let ready: Vec<&Endpoint> = stored.iter().flat_map(|it| &it.endpoints).filter(|it| it.is_ready()).collect();
            let hinted = ready.iter().filter(|it| it.hints.is_some()).count();
            assert!(hinted == 0 || hinted == ready.len(), "seed {seed}: {hinted} of {}", ready.len());
        }
    }
}
