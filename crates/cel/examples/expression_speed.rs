//! How long a simple rule takes to compile and to evaluate: `cargo run --release -p corten-cel --example expression_speed`.

#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "it measures, and says what it measured")]

use std::{hint::black_box, time::Instant};

use corten_cel::{Activation, DeclType, Env, NEW_EXPRESSIONS, PER_CALL_LIMIT, Value};
use serde_json::json;

const ROUNDS: u32 = 20_000;

fn main() {
    let schema = json!({ "type": "object", "properties": { "spec": { "type": "object", "properties": {
        "replicas": { "type": "integer" },
        "minReplicas": { "type": "integer" },
        "maxReplicas": { "type": "integer" },
        "name": { "type": "string", "maxLength": 63 },
        "ports": { "type": "array", "maxItems": 10, "items": { "type": "integer" } },
    } } } });
    let declared = DeclType::from_schema(&schema, true).expect("a type").named("selfType");
    let env = Env::new(NEW_EXPRESSIONS).variable("self", declared.clone());
    let object = json!({ "spec": {
        "replicas": 3, "minReplicas": 1, "maxReplicas": 5, "name": "web-1", "ports": [80, 443, 8080],
    } });
    for source in [
        "self.spec.replicas <= 10",
        "self.spec.minReplicas <= self.spec.replicas && self.spec.replicas <= self.spec.maxReplicas",
        "self.spec.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
        "self.spec.ports.all(port, port > 0 && port < 65536)",
    ] {
        let start = Instant::now();
        for _ in 0..ROUNDS / 10 {
            black_box(env.compile(black_box(source)).expect("it compiles"));
        }
        let compile = start.elapsed() / (ROUNDS / 10);
        let start = Instant::now();
        for _ in 0..ROUNDS / 10 {
            black_box(env.check(black_box(source)).expect("it checks").estimate());
        }
        let estimate = start.elapsed() / (ROUNDS / 10);
        let program = env.compile(source).expect("it compiles");
        let start = Instant::now();
        for _ in 0..ROUNDS {
            let activation = Activation::new().with("self", Value::declared(&object, &declared));
            black_box(program.evaluate(&activation, PER_CALL_LIMIT).result.expect("a value"));
        }
        let evaluate = start.elapsed() / ROUNDS;
        println!("compile {compile:>9.2?}  check and estimate {estimate:>9.2?}  evaluate {evaluate:>9.2?}  {source}");
    }
}
