//! The rules of a Job's spec, which a CronJob's template shares.

use corten_meta::{Violation, field};
use corten_schema::Cursor;
use corten_validation::{labels, pod_spec, rules};

use super::{failure, success};
use crate::core::workload;

const INDEXES_PARALLEL_MAX: i64 = 100_000;
/// From here on, Jobs with a limit per index must say how much may fail.
const INDEXES_MANY: i64 = 100_000;
const INDEXES_FAILED_MAX: i64 = 10_000;
const MANAGER_BYTES_MAX: usize = 63;

pub(super) fn job(job: Cursor<'_>) {
    let spec = job.at("spec");
    self::spec(spec);
    let selector = spec.at("selector");
    let is_selector = !selector.exists() || labels::label_selector(selector);
    if !selector.exists() {
        selector.missing("");
    }
    let labels = spec.at("template").at("metadata").at("labels");
    if is_selector && !workload::matches(selector, labels) {
        labels.invalid(workload::MISMATCH);
    }
    let completions = spec.at("completions").int();
    if is_indexed(spec) && completions > 0 {
        let name = job.at("metadata").at("name");
        let last = format!("{}-{}", name.str(), completions - 1);
        if !field::dns1123_label(&last).is_empty() {
            name.invalid(&format!("will not able to create pod with invalid DNS label: {last}"));
        }
    }
}

fn is_indexed(spec: Cursor<'_>) -> bool {
    spec.at("completionMode").str() == "Indexed"
}

pub(crate) fn spec(spec: Cursor<'_>) {
    for number in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        spec.at(number).non_negative_int();
    }
    let per_index = spec.at("backoffLimitPerIndex");
    if spec.at("maxFailedIndexes").exists() && !per_index.exists() {
        per_index.missing("when maxFailedIndexes is specified");
    }
    let manager = spec.at("managedBy");
    if manager.exists() {
        rules::domain_prefixed_path(manager);
        if manager.str().len() > MANAGER_BYTES_MAX {
            manager.report(Violation::too_long(manager.path(), MANAGER_BYTES_MAX));
        }
    }
    mode(spec);
    if spec.at("podFailurePolicy").exists() {
        failure::validate(spec);
    }
    if spec.at("successPolicy").exists() {
        if is_indexed(spec) {
            success::validate(spec);
        } else {
            spec.at("successPolicy").invalid("requires indexed completion mode");
        }
    }
    replacement(spec);
    pod_spec::validate_template(spec.at("template"));
    let restart = spec.at("template").at("spec").at("restartPolicy");
    match restart.str() {
        "OnFailure" | "Never" => {}
        // What was left out has become this.
        "Always" => restart.missing("valid values: \"OnFailure\", \"Never\""),
        _ => restart.unsupported(&["Never", "OnFailure"]),
    }
    if spec.at("podFailurePolicy").exists() && restart.str() != "Never" {
        restart.invalid("only \"Never\" is supported when podFailurePolicy is specified");
    }
}

fn mode(spec: Cursor<'_>) {
    let mode = spec.at("completionMode");
    rules::optional_one_of(mode, &["Indexed", "NonIndexed"]);
    let (completions, parallelism) = (spec.at("completions"), spec.at("parallelism"));
    let (per_index, failed) = (spec.at("backoffLimitPerIndex"), spec.at("maxFailedIndexes"));
    if !is_indexed(spec) {
        for field in [per_index, failed].into_iter().filter(|it| it.exists()) {
            field.invalid("requires indexed completion mode");
        }
        return;
    }
    if !completions.exists() {
        completions.missing("when completion mode is Indexed");
    }
    if parallelism.int() > INDEXES_PARALLEL_MAX {
        let detail = format!("must be less than or equal to {INDEXES_PARALLEL_MAX} when completion mode is Indexed");
        parallelism.invalid(&detail);
    }
    if completions.exists() && failed.int() > completions.int() {
        failed.invalid("must be less than or equal to completions");
    }
    if failed.int() > INDEXES_MANY {
        failed.invalid(&format!("must be less than or equal to {INDEXES_MANY}"));
    }
    if completions.int() > INDEXES_MANY && per_index.exists() {
        if !failed.exists() {
            failed.missing(&format!("must be specified when completions is above {INDEXES_MANY}"));
        }
        for number in [parallelism, failed].into_iter().filter(|it| it.int() > INDEXES_FAILED_MAX) {
            number.invalid(&format!("must be less than or equal to {INDEXES_FAILED_MAX} when completions are above {INDEXES_MANY} and used with backoff limit per index"));
        }
    }
}

fn replacement(spec: Cursor<'_>) {
    let replacement = spec.at("podReplacementPolicy");
    if replacement.exists() {
        let fits: &[&str] =
            if spec.at("podFailurePolicy").exists() { &["Failed"] } else { &["Failed", "TerminatingOrFailed"] };
        replacement.one_of(fits);
    }
}
