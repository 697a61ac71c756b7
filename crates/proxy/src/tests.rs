mod kernel;
mod world;

use std::fmt::Write as _;

use kernel::Kernel;
use world::{config, event};

use super::*;

/// Every case of `testdata`: what is new, `----`, what is to be done about it, and so on.
#[test]
fn cases() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata");
    let entries = std::fs::read_dir(dir).expect("the folder of cases");
    let mut paths: Vec<_> = entries.map(|it| it.expect("the folder can be read").path()).collect();
    paths.sort();
    for path in paths {
        let text = std::fs::read_to_string(&path).expect("a file of cases");
        let actual =
            text.split("\n\n# ").enumerate().map(|(n, it)| played(it.trim_start_matches("# "), n)).collect::<String>();
        let actual = format!("{}\n", actual.trim_end());
        if actual == text {
            continue;
        }
        #[expect(clippy::disallowed_methods, reason = "the switch that rewrites expectations; tests only")]
        let update = std::env::var("UPDATE").is_ok();
        assert!(update, "{}: UPDATE=1 rewrites it. Now it would be:\n{actual}", path.display());
        std::fs::write(&path, actual).expect("written");
    }
}

/// One case, with what came of it. Two lines of dashes enclose each answer; the kernel of the tests checks every step.
fn played(case: &str, n: usize) -> String {
    let mut out = String::from(if n == 0 { "# " } else { "\n# " });
    let mut proxy = Proxy::new(config());
    proxy.step(event("range kubernetes 10.96.0.0/12,fd00:10:96::/112"));
    let mut kernel = Kernel::default();
    kernel.apply(&proxy.whole(&kernel.existing()));
    let mut batch = Vec::new();
    let mut is_answer = false;
    for line in case.lines().chain(["----"]) {
        match line {
            "----" if !batch.is_empty() => {
                let step = proxy.step(std::mem::take(&mut batch));
                kernel.apply(&step.changes);
                let _ = writeln!(out, "----\n{}", told(&step));
                is_answer = true;
            }
            "----" => {}
            line if is_answer && line.starts_with("then") => {
                is_answer = false;
                let _ = writeln!(out, "{line}");
            }
            _ if is_answer => {}
            "" => {}
            line => {
                batch.extend(event(line));
                let _ = writeln!(out, "{line}");
            }
        }
    }
    kernel.is_like(&proxy);
    out
}

fn told(step: &Step) -> String {
    let mut text = String::new();
    for change in &step.changes {
        let _ = writeln!(text, "{change}");
    }
    for Stale { front, backend } in &step.stale {
        let address = front.address.map_or_else(|| "node".to_owned(), |it| it.to_string());
        let to = backend.map_or_else(|| "nobody".to_owned(), |it| it.to_string());
        let _ = writeln!(text, "forget flows of {address} port {} to {to}", front.port);
    }
    for health in step.health.iter().flatten() {
        let _ = writeln!(text, "answer at {}: {} has {}", health.port, health.service, health.local_endpoints);
    }
    for (key, decision) in &step.decisions {
        for effect in &decision.effects {
            let _ = writeln!(text, "{key}: {effect}");
        }
        for wait in &decision.waits {
            let _ = writeln!(text, "{key}: wait {} ({:?}): {}", wait.reason, wait.actor, wait.message);
        }
    }
    text
}

/// Whatever happens in whatever order: what the changes add up to is what a start from nothing makes.
#[test]
fn changes_add_up_to_the_whole() {
    for seed in 1..=40_u64 {
        let mut random = seed;
        let mut draw = |n: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % n
        };
        let mut proxy = Proxy::new(config());
        let mut kernel = Kernel::default();
        kernel.apply(&proxy.whole(&kernel.existing()));
        for _ in 0..60 {
            let n = draw(3) + 1;
            let batch: Vec<Event> = (0..n).flat_map(|_| event(&random_line(&mut draw))).collect();
            kernel.apply(&proxy.step(batch).changes);
            kernel.is_like(&proxy);
            if draw(10) == 0 {
                // As after a restart that knows nothing.
                kernel.apply(&proxy.whole(&kernel.existing()));
                kernel.is_like(&proxy);
            }
        }
    }
}

fn random_line(draw: &mut impl FnMut(u64) -> u64) -> String {
    let name = ["web", "api", "dns"][usize::try_from(draw(3)).expect("small")];
    match draw(10) {
        9 => ["range more 192.0.2.0/24", "gone range more"][usize::try_from(draw(2)).expect("small")].to_owned(),
        8 => format!("listening {}", ["80/TCP", "53/UDP"][usize::try_from(draw(2)).expect("small")]),
        0 => format!("gone service {name}"),
        1 => format!("gone slice {name}-{}", draw(2)),
        2 => format!("zone z{}", draw(2)),
        3..5 => {
            let number = draw(3);
            let mut line = format!("service {name} ip=10.96.0.{number},fd00:10:96::{number} age={}", draw(3));
            line += ["", " type=NodePort", " type=LoadBalancer ingress=172.30.0.2"]
                [usize::try_from(draw(3)).expect("small")];
            line += [" ports=http:80/TCP:30080", " ports=http:80/TCP:30080,dns:53/UDP:30053"]
                [usize::try_from(draw(2)).expect("small")];
            for (one_of, word) in [
                (3, " ext=Local"),
                (4, " int=Local"),
                (3, " affinity=60"),
                (4, " external=192.0.2.1"),
                (4, " ranges=10.0.0.0/8"),
            ] {
                if draw(one_of) == 0 {
                    line += word;
                }
            }
            line
        }
        _ => {
            let mut line =
                format!("slice {name}-{} of={name} ports=http:{}/TCP,dns:53/UDP to=", draw(2), 8080 + draw(2));
            for _ in 0..draw(6) {
                line += &format!("10.244.0.{}", draw(8) + 2);
                line += ["", "@n2", "!unready", "!ending", "~z1"][usize::try_from(draw(5)).expect("small")];
                line += ",";
            }
            line
        }
    }
}

/// Lists that are multiplied with each other: ports with addresses, with source ranges, and with endpoints.
#[test]
fn what_is_more_than_a_node_can_hold_is_not_laid() {
    let ports = |n: usize| (1..=n).map(|it| format!("p{it}:{it}/TCP")).collect::<Vec<_>>().join(",");
    let addresses =
        |n: usize| (0..n).map(|it| format!("192.0.{}.{}", it / 256, it % 256)).collect::<Vec<_>>().join(",");
    let ranges =
        |n: usize| (0..n).map(|it| format!("192.0.{}.{}/32", it / 256, it % 256)).collect::<Vec<_>>().join(",");
    for (lines, is_laid) in [
        (
            vec![
                format!("service web ip=10.96.0.7 ports={}", ports(5_000)),
                format!("slice s of=web ports={} to=10.244.0.3", ports(5_000)),
            ],
            true,
        ),
        (vec![format!("service web ip=10.96.0.7 ports={} external={}", ports(20_000), addresses(20_000))], false),
        (
            vec![format!(
                "service web ip=10.96.0.7 type=LoadBalancer ports={} ingress=203.0.113.1 ranges={}",
                ports(20_000),
                ranges(20_000)
            )],
            false,
        ),
        (
            vec![
                format!("service web ip=10.96.0.7 ports={}", ports(5_000)),
                format!("slice s of=web ports={} to={}", ports(5_000), addresses(1_000)),
            ],
            false,
        ),
    ] {
        let mut proxy = Proxy::new(config());
        proxy.step(lines.iter().filter_map(|it| event(it)));
        let decisions = proxy.decisions();
        let waits: Vec<&str> = decisions.iter().flat_map(|it| &it.1.waits).map(|it| &*it.reason).collect();
        assert_eq!(waits.contains(&"TooManyRules"), !is_laid, "{}", &lines[0][..80]);
    }
}
