//! Files that configure the scheduler: what they set is kept to, and what they cannot set is refused with its path.

use corten_api::lease_times::LeaseTimes;

use super::*;
use crate::{
    LeaderElection,
    arguments::{Resources, Shape, Strategy},
};

fn read(mut configuration: Value) -> Result<Config, Vec<String>> {
    configuration["apiVersion"] = json!("kubescheduler.config.k8s.io/v1");
    configuration["kind"] = json!("KubeSchedulerConfiguration");
    Config::read(&configuration)
}

fn one(profile: Value) -> Result<Config, Vec<String>> {
    read(json!({ "profiles": [profile] }))
}

#[test]
fn nothing_said_is_the_default() {
    let config = read(json!({})).expect("it can be read");
    assert_eq!(config.profiles, Config::default().profiles);
    let config = one(json!({})).expect("it can be read");
    assert_eq!(config.profiles, Config::default().profiles);
}

#[test]
fn a_leader_is_elected_where_that_is_asked_for() {
    let election = |said: Value| read(json!({ "leaderElection": said })).expect("it can be read").leader_election;
    assert_eq!(election(json!({})), None);
    assert_eq!(election(json!({ "leaderElect": false, "leaseDuration": "0s" })), None, "times say nothing then");
    let times = LeaseTimes::default();
    let said = LeaderElection { namespace: "kube-system".into(), name: "kube-scheduler".into(), times };
    assert_eq!(election(json!({ "leaderElect": true })), Some(said.clone()));
    let times = LeaseTimes { duration: Duration::from_secs(60), ..times };
    let other = LeaderElection { name: "batch".into(), namespace: "batch".into(), times };
    let named =
        json!({ "leaderElect": true, "leaseDuration": "1m", "resourceName": "batch", "resourceNamespace": "batch" });
    assert_eq!(election(named), Some(other));
}

#[test]
fn a_cluster_is_named_for_a_process_of_its_own() {
    let config = read(json!({ "clientConnection": { "kubeconfig": "/etc/scheduler.conf" }, "enableProfiling": false }));
    assert_eq!(
        config.expect("it can be read").kubeconfig.as_deref(),
        Some(std::path::Path::new("/etc/scheduler.conf"))
    );
    let problems =
        read(json!({ "clientConnection": { "qps": 50, "burst": 100 }, "enableProfiling": true, "parallelism": 16 }));
    assert_eq!(
        problems.expect_err("none of this can be kept to"),
        [
            "parallelism: cannot be set here",
            "enableProfiling: must be false: there is nothing to profile with",
            "clientConnection.qps: cannot be set here",
            "clientConnection.burst: cannot be set here",
        ]
    );
}

#[test]
fn what_is_set_is_kept_to() {
    let config = read(json!({ "podInitialBackoffSeconds": 2, "podMaxBackoffSeconds": 20, "percentageOfNodesToScore": 100,
        "leaderElection": { "leaderElect": false },
        "profiles": [
            { "schedulerName": "packing",
              "plugins": { "score": { "disabled": [{ "name": "*" }], "enabled": [{ "name": "NodeResourcesFit", "weight": 5 }] },
                           "postFilter": { "disabled": [{ "name": "DefaultPreemption" }] } },
              "pluginConfig": [{ "name": "NodeResourcesFit", "args": { "scoringStrategy": {
                  "type": "RequestedToCapacityRatio", "resources": [{ "name": "example.com/gpu", "weight": 3 }],
                  "requestedToCapacityRatio": { "shape": [{ "utilization": 0, "score": 0 }, { "utilization": 100, "score": 10 }] } } } }] },
            { "schedulerName": "default-scheduler",
              "plugins": { "multiPoint": { "disabled": [{ "name": "NodeResourcesFit" }], "enabled": [{ "name": "TaintToleration", "weight": 7 }] } } },
        ] }))
    .expect("it can be read");
    assert_eq!((config.backoff_initial.as_secs(), config.backoff_max.as_secs()), (2, 20));
    let place = |name: &str| PLUGINS.iter().position(|it| it.name == name).expect("a plugin");
    let packing = &config.profiles[0];
    assert_eq!(packing.scores, [(place("NodeResourcesFit"), 5)]);
    assert_eq!((packing.preempts, packing.percentage_of_nodes_to_score), (false, 100));
    assert_eq!(packing.arguments.fit.strategy, Strategy::RequestedToCapacityRatio(Shape(vec![(0, 0), (100, 100)])));
    assert_eq!(packing.arguments.fit.resources, Resources(vec![("example.com/gpu".into(), 3)]));
    let other = &config.profiles[1];
    assert!(!other.filters.contains(&place("NodeResourcesFit")) && other.preempts);
    assert!(
        other.scores.contains(&(place("TaintToleration"), 7)) && other.scores.contains(&(place("NodeAffinity"), 2))
    );
}

#[test]
fn all_plugins_of_a_point_may_be_disabled_but_those_that_bind() {
    let only = |names: &[&str]| {
        let enabled: Vec<Value> = names.iter().map(|it| json!({ "name": it })).collect();
        json!({ "disabled": [{ "name": "*" }], "enabled": enabled })
    };
    let config = one(json!({ "plugins": {
        "filter": only(&["NodeResourcesFit", "VolumeBinding", "DynamicResources"]),
        "preFilter": only(&["VolumeBinding", "DynamicResources"]),
        "preEnqueue": only(&[]),
    } }))
    .expect("it can be read");
    let names = |of: &[usize]| -> Vec<&str> { of.iter().map(|it| PLUGINS[*it].name).collect() };
    let profile = &config.profiles[0];
    assert_eq!(names(&profile.filters), ["NodeResourcesFit", "VolumeBinding", "DynamicResources"]);
    assert_eq!(names(&profile.pre_filters), ["VolumeBinding", "DynamicResources"]);
    assert_eq!(names(&profile.pre_enqueue), [""; 0]);
}

/// What a file says that kube-scheduler wrote, and what each profile waits for.
#[test]
fn each_profile_waits_as_long_as_it_says() {
    let profile = |name: &str, args: &[(&str, Value)]| {
        let args: Vec<Value> = args.iter().map(|it| json!({ "name": it.0, "args": it.1 })).collect();
        json!({ "schedulerName": name, "pluginConfig": args })
    };
    let of_devices = |it: &str| {
        ("DynamicResources", json!({ "kind": "DynamicResourcesArgs", "filterTimeout": "10s", "bindingTimeout": it }))
    };
    let of_volumes = |it: i64| ("VolumeBinding", json!({ "bindTimeoutSeconds": it }));
    let election = json!({ "leaderElect": false, "leaseDuration": "15s", "renewDeadline": "10s", "retryPeriod": "2s",
        "resourceLock": "leases", "resourceName": "kube-scheduler", "resourceNamespace": "kube-system" });
    let profiles = [profile("quick", &[of_devices("1m0s"), of_volumes(30)]), profile("slow", &[of_volumes(900)])];
    let config = read(json!({ "delayCacheUntilActive": true, "leaderElection": election, "profiles": profiles }));
    let config = config.expect("it can be read");
    let waits = |at: usize| {
        let arguments = &config.profiles[at].arguments;
        (arguments.volumes.bind_timeout.as_secs(), arguments.devices.bind_timeout.as_secs())
    };
    assert_eq!((waits(0), waits(1)), ((30, 60), (900, 600)));
    let world = world(
        "node n1 labels=kubernetes.io/hostname=n1\npvc data class=std\nstorage-class std waits\npod a claim=data spec.schedulerName=\"quick\"",
    );
    let mut scheduler = Scheduler::new(config);
    storage(&world).into_iter().for_each(|it| drop(scheduler.step(it, world.now)));
    world.list(&NODES).for_each(|it| drop(scheduler.step(node(it.1), world.now)));
    world.list(&PODS).for_each(|it| drop(scheduler.step(pod(it.1), world.now)));
    let effects = scheduler.step(Event::Tick, world.now);
    assert!(effects.contains(&Effect::WakeAt(world.now.after(Duration::from_secs(30)))), "{effects:?}");
}

#[test]
fn a_pod_that_spreads_by_default_waits_for_what_happens_elsewhere() {
    let constraint = json!({ "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule" });
    let args = json!({ "defaultingType": "List", "defaultConstraints": [constraint] });
    let config =
        one(json!({ "pluginConfig": [{ "name": "PodTopologySpread", "args": args }] })).expect("it can be read");
    let world = world(
        "node n1 labels=zone=a\nnode n2 labels=zone=b cordoned\npod a node=n1 running labels=app=web\n\
         pod c labels=app=web",
    );
    let service =
        json!({ "metadata": { "name": "web", "namespace": "default" }, "spec": { "selector": { "app": "web" } } });
    let arrival = pod(&object("pod b node=n2 running labels=app=web", "b"));
    for happening in [arrival, Event::NodeGone("n2".into())] {
        let mut scheduler = Scheduler::new(config.clone());
        scheduler.step(of_cluster::<crate::Service>(&service), world.now);
        world.list(&NODES).for_each(|it| drop(scheduler.step(node(it.1), world.now)));
        world.list(&PODS).for_each(|it| drop(scheduler.step(pod(it.1), world.now)));
        assert_eq!(binds(&mut scheduler, Event::Tick, world.now), ["c!"]);
        let later = world.now.after(Duration::from_secs(20));
        scheduler.step(happening.clone(), later);
        assert_eq!(binds(&mut scheduler, Event::Tick, later), ["c>n1"], "{happening:?}");
    }
}

#[test]
fn what_cannot_be_is_refused_with_its_path() {
    let fit = |args: Value| json!({ "pluginConfig": [{ "name": "NodeResourcesFit", "args": args }] });
    for (configuration, problem) in [
        (one(json!({ "plugin": {} })), r#"unknown field "profiles[0].plugin""#),
        (
            one(fit(json!({ "scoringStrategy": { "typ": "x" } }))),
            r#"unknown field "profiles[0].pluginConfig[0].args.scoringStrategy.typ""#,
        ),
        (
            one(fit(json!({ "scoringStrategy": { "type": "Most" } }))),
            r#"profiles[0].pluginConfig[0].args.scoringStrategy.type: Unsupported value: "Most""#,
        ),
        (
            one(fit(json!({ "scoringStrategy": { "type": "RequestedToCapacityRatio" } }))),
            "shape: Required value: at least one point must be specified",
        ),
        (
            one(json!({ "plugins": { "filter": { "enabled": [{ "name": "Fast" }] } } })),
            r#"profiles[0].plugins.filter.enabled[0].name: plugin "Fast" does not exist"#,
        ),
        (
            one(json!({ "plugins": { "filter": { "enabled": [{ "name": "ImageLocality" }] } } })),
            r#"profiles[0].plugins.filter: plugin "ImageLocality" does not extend it"#,
        ),
        (
            one(json!({ "plugins": { "multiPoint": { "disabled": [{ "name": "VolumeBinding" }] } } })),
            "VolumeBinding cannot be disabled here",
        ),
        (
            one(json!({ "plugins": { "preBind": { "disabled": [{ "name": "*" }] } } })),
            "profiles[0].plugins.preBind: cannot be set here",
        ),
        (
            one(json!({ "pluginConfig": [{ "name": "DynamicResources", "args": { "bindingTimeout": "900ms" } }] })),
            "profiles[0].pluginConfig[0].args.bindingTimeout: Invalid value: must be at least 1 second",
        ),
        (
            read(json!({ "leaderElection": { "leaseDuration": 15 } })),
            "leaderElection.leaseDuration: Invalid value: 15: no duration",
        ),
        (
            read(
                json!({ "leaderElection": { "leaderElect": true, "renewDeadline": "15s", "resourceLock": "endpoints" } }),
            ),
            "leaderElection.resourceLock: Invalid value: \"endpoints\": resourceLock value must be \"leases\"\n\
             leaderElection.leaseDuration: Invalid value: LeaseDuration must be greater than RenewDeadline",
        ),
        (
            read(
                json!({ "leaderElection": { "leaderElect": true, "resourceName": "Mine_1", "resourceNamespace": "a.b" } }),
            ),
            "leaderElection.resourceName: Invalid value: \"Mine_1\": a lowercase RFC 1123 subdomain must consist of lower case \
             alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex \
             used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')\n\
             leaderElection.resourceNamespace: Invalid value: \"a.b\": must not contain dots",
        ),
        (
            read(
                json!({ "leaderElection": { "leaderElect": true, "leaseDuration": "0s", "renewDeadline": "0s", "retryPeriod": "0s" } }),
            ),
            "leaderElection.leaseDuration: Invalid value: must be at least 1 second\n\
             leaderElection.retryPeriod: Invalid value: must be greater than zero\n\
             leaderElection.leaseDuration: Invalid value: LeaseDuration must be greater than RenewDeadline\n\
             leaderElection.renewDeadline: Invalid value: must be greater than 1.2 times retryPeriod",
        ),
        (
            one(json!({ "pluginConfig": [{ "name": "VolumeBinding" }, { "name": "VolumeBinding" }] })),
            "profiles[0].pluginConfig[1].name: repeated config for plugin VolumeBinding",
        ),
        (
            one(json!({ "plugins": { "filter": { "disabled": [{ "name": "*" }] } } })),
            "profiles[0].plugins.filter.disabled: VolumeBinding cannot be disabled here: enable it again",
        ),
        (read(json!({ "extenders": [{ "urlPrefix": "x" }] })), "extenders[0].urlPrefix: Invalid value: \"x\""),
        (
            read(json!({ "extenders": [{ "urlPrefix": "http://x", "prioritizeVerb": "p" }] })),
            "extenders[0].weight: Invalid value: 0: must have a positive weight",
        ),
        (
            read(
                json!({ "extenders": [{ "urlPrefix": "http://x", "bindVerb": "b" }, { "urlPrefix": "http://y", "bindVerb": "b" }] }),
            ),
            "extenders: Invalid value: found 2 extenders implementing bind",
        ),
        (
            read(
                json!({ "extenders": [{ "urlPrefix": "http://x", "managedResources": [{ "name": "cpu" }], "httpTimeout": "soon" }] }),
            ),
            "extenders[0].managedResources[0].name: Invalid value: \"cpu\"",
        ),
        (
            read(json!({ "extenders": [{ "urlPrefix": "http://x", "httpTimeout": "soon" }] })),
            "extenders[0].httpTimeout: Invalid value",
        ),
        (
            read(json!({ "percentageOfNodesToScore": 101 })),
            "percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]",
        ),
        (
            read(json!({ "profiles": [{ "schedulerName": "a" }, { "schedulerName": "a" }] })),
            r#"profiles[1].schedulerName: Duplicate value: "a""#,
        ),
        (read(json!({ "profiles": [{ "schedulerName": "a" }, {}] })), "profiles[1].schedulerName: Required value"),
        (Config::read(&json!({ "apiVersion": "v1", "kind": "Pod" })), "no kind \"Pod\" is registered"),
    ] {
        let problems = configuration.expect_err(problem).join("\n");
        assert!(problems.contains(problem), "{problem}: {problems}");
    }
}

#[test]
fn extenders_are_read_with_their_defaults() {
    let gpu = json!({ "name": "example.com/gpu", "ignoredByScheduler": true });
    let config = read(json!({ "extenders": [
        { "urlPrefix": "https://x/y", "filterVerb": "f", "prioritizeVerb": "p", "weight": 2, "enableHTTPS": true, "nodeCacheCapable": true,
          "httpTimeout": "100ms", "managedResources": [gpu], "ignorable": true, "tlsConfig": { "caFile": "/ca", "keyData": "aw==" } },
        { "urlPrefix": "http://x", "preemptVerb": "e", "bindVerb": "b" },
    ] }))
    .expect("it can be read");
    let [first, second] = &*config.extenders else { panic!("{:?}", config.extenders) };
    assert_eq!((first.timeout.as_millis(), second.timeout.as_secs(), first.weight), (100, 5, 2));
    assert!(first.enable_https && first.node_cache_capable && first.ignorable && !second.ignorable);
    assert_eq!((&first.tls.ca, &first.tls.key), (&crate::Pem::File("/ca".into()), &crate::Pem::Data("aw==".into())));
    assert_eq!((&*second.preempt_verb, &*second.bind_verb), ("e", "b"));
    assert!(config.profiles[0].arguments.fit.ignores("example.com/gpu"), "only the extender looks at it");
}

/// Pods of two profiles in one scheduler: one packs, the other spreads; one of neither is left alone.
#[test]
fn each_profile_places_its_own_pods() {
    let most = json!({ "scoringStrategy": { "type": "MostAllocated" } });
    let config = read(json!({ "profiles": [
        { "schedulerName": "default-scheduler" },
        { "schedulerName": "packing", "pluginConfig": [{ "name": "NodeResourcesFit", "args": most }],
          "plugins": { "score": { "disabled": [{ "name": "NodeResourcesBalancedAllocation" }] } } },
    ] }))
    .expect("it can be read");
    let world = world(
        "node n1 cpu=4\nnode n2 cpu=4\npod here cpu=2 node=n1 running\npod a cpu=1 priority=2\n\
         pod b cpu=1 priority=1 spec.schedulerName=packing\npod c cpu=1 spec.schedulerName=other",
    );
    let mut scheduler = Scheduler::new(config);
    world.list(&NODES).for_each(|it| drop(scheduler.step(node(it.1), world.now)));
    world.list(&PODS).for_each(|it| drop(scheduler.step(pod(it.1), world.now)));
    assert_eq!(binds(&mut scheduler, Event::Tick, world.now), ["a>n2", "b>n1"]);
}

/// What the next tick does with a world, by a scheduler with this profile.
fn told_to(profile: Value, lines: &str) -> (Scheduler, Time) {
    let (mut scheduler, world) = (Scheduler::new(one(profile).expect("it can be read")), world(lines));
    storage(&world).into_iter().for_each(|it| drop(scheduler.step(it, world.now)));
    world.list(&NODES).for_each(|it| drop(scheduler.step(node(it.1), world.now)));
    world.list(&PODS).for_each(|it| drop(scheduler.step(pod(it.1), world.now)));
    (scheduler, world.now)
}

fn placed_by(profile: Value, lines: &str) -> Vec<String> {
    let (mut scheduler, now) = told_to(profile, lines);
    binds(&mut scheduler, Event::Tick, now)
}

fn with_args(plugin: &str, args: Value) -> Value {
    json!({ "pluginConfig": [{ "name": plugin, "args": args }] })
}

#[test]
fn a_shape_says_how_full_a_node_should_be() {
    let lines = "node n1 cpu=4\nnode n2 cpu=4\nnode n3 cpu=4\npod one cpu=1 node=n1 running\n\
                 pod two cpu=2 node=n2 running\npod a cpu=1";
    let by = |points: &[(i64, i64)]| {
        let shape: Vec<Value> = points.iter().map(|it| json!({ "utilization": it.0, "score": it.1 })).collect();
        let mut profile = with_args(
            "NodeResourcesFit",
            json!({ "scoringStrategy": { "type": "RequestedToCapacityRatio", "resources": [{ "name": "cpu", "weight": 1 }],
                "requestedToCapacityRatio": { "shape": shape } } }),
        );
        profile["plugins"] =
            json!({ "score": { "disabled": [{ "name": "*" }], "enabled": [{ "name": "NodeResourcesFit" }] } });
        placed_by(profile, lines)
    };
    assert_eq!(by(&[(0, 0), (100, 10)]), ["a>n2"], "the fullest");
    assert_eq!(by(&[(0, 10), (100, 0)]), ["a>n3"], "the emptiest");
    assert_eq!(by(&[(0, 0), (50, 10), (100, 0)]), ["a>n1"], "half full");
}

#[test]
fn affinity_may_be_added_to_that_of_all_pods() {
    let terms = json!([{ "matchExpressions": [{ "key": "disk", "operator": "In", "values": ["ssd"] }] }]);
    let required = json!({ "nodeSelectorTerms": terms });
    let added = json!({ "addedAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": required } });
    let profile = || with_args("NodeAffinity", added.clone());
    let lines = "node n1 cpu=8 labels=zone=a\nnode n2 cpu=1 labels=disk=ssd\npod a cpu=1\n\
                 pod b cpu=1 spec.nodeSelector={\"zone\":\"a\"}";
    assert_eq!(placed_by(profile(), lines), ["a>n2", "b!"]);
    let (mut scheduler, now) = told_to(profile(), "node n1\npod a");
    let told = describe(&scheduler.step(Event::Tick, now), now);
    assert!(told.contains("1 node(s) didn't match scheduler-enforced node affinity"), "{told}");
}

#[test]
fn how_much_placed_pods_draw_others_can_be_set() {
    let draws = |terms: Value| {
        format!(
            "node n1 cpu=4 labels=zone=a\nnode n2 cpu=4 labels=zone=b\n\
             pod db cpu=1 node=n1 running spec.affinity.podAffinity={terms}\npod web cpu=100m labels=app=web"
        )
    };
    let term = json!({ "topologyKey": "zone", "labelSelector": { "matchLabels": { "app": "web" } } });
    let required = draws(json!({ "requiredDuringSchedulingIgnoredDuringExecution": [term] }));
    let preferred =
        draws(json!({ "preferredDuringSchedulingIgnoredDuringExecution": [{ "weight": 1, "podAffinityTerm": term }] }));
    let by = |args: Value, lines: &str| placed_by(with_args("InterPodAffinity", args), lines);
    assert_eq!(by(json!({}), &required), ["web>n1"]);
    assert_eq!(by(json!({ "hardPodAffinityWeight": 0 }), &required), ["web>n2"]);
    assert_eq!(by(json!({ "ignorePreferredTermsOfExistingPods": false }), &preferred), ["web>n1"]);
    assert_eq!(by(json!({ "ignorePreferredTermsOfExistingPods": true }), &preferred), ["web>n2"]);
}

#[test]
fn resources_may_be_left_to_others() {
    let lines = r#"node n1
pod a spec.containers=[{"name":"c","resources":{"requests":{"example.com/gpu":"1"}}}]
pod b spec.containers=[{"name":"c","resources":{"requests":{"other.com/gpu":"1"}}}]"#;
    let by = |args: Value| placed_by(with_args("NodeResourcesFit", args), lines);
    assert_eq!(by(json!({})), ["a!", "b!"]);
    assert_eq!(by(json!({ "ignoredResources": ["example.com/gpu"] })), ["a>n1", "b!"]);
    assert_eq!(by(json!({ "ignoredResourceGroups": ["other.com"] })), ["a!", "b>n1"]);
}

/// Of more than a hundred nodes some are looked at, each pod's search goes on where the last one ended; or all are, where that is set.
#[test]
fn of_many_nodes_some_are_looked_at() {
    const PREFERS: &str = r#"spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution=[{"weight":100,"preference":{"matchExpressions":[{"key":"disk","operator":"In","values":["ssd"]}]}}]"#;
    let mut lines = String::new();
    for it in 0..250 {
        let labels = if it == 249 { " labels=disk=ssd" } else { "" };
        let _ = writeln!(lines, "node n{it:03} cpu=8{labels}");
    }
    for it in 1..=3 {
        let _ = writeln!(lines, "pod p{it} cpu=100m {PREFERS}");
    }
    // 48 % of them are 120.
    let has_best = |placed: Vec<String>| -> Vec<bool> { placed.iter().map(|it| it.ends_with(">n249")).collect() };
    assert_eq!(has_best(placed_by(json!({}), &lines)), [false, false, true]);
    assert_eq!(has_best(placed_by(json!({ "percentageOfNodesToScore": 100 }), &lines)), [true; 3]);
    // Never less than a hundred.
    assert_eq!(has_best(placed_by(json!({ "percentageOfNodesToScore": 1 }), &lines)), [false, false, true]);
}

#[test]
fn a_shape_says_how_full_storage_should_be() {
    let lines = "node n1 labels=kubernetes.io/hostname=n1\nnode n2 labels=kubernetes.io/hostname=n2\n\
                 pvc data class=std size=5Gi\nstorage-class std waits\ncsi-driver example.com/disk spec.storageCapacity=true\n\
                 csi-storage-capacity c1 class=std room=6Gi on=n1\ncsi-storage-capacity c2 class=std room=60Gi on=n2\n\
                 pod a claim=data";
    let packed = json!({ "shape": [{ "utilization": 0, "score": 0 }, { "utilization": 100, "score": 10 }] });
    for (args, chosen) in [(json!({}), "n2"), (packed, "n1")] {
        let (mut scheduler, now) = told_to(with_args("VolumeBinding", args), lines);
        let told = describe(&scheduler.step(Event::Tick, now), now);
        assert!(told.contains(&format!("selected-node\":\"{chosen}\"")), "{told}");
    }
    let unsorted = json!({ "shape": [{ "utilization": 50, "score": 0 }, { "utilization": 50, "score": 10 }] });
    let problems = one(with_args("VolumeBinding", unsorted)).expect_err("it is not sorted").join("\n");
    let path = "profiles[0].pluginConfig[0].args.shape[1].utilization: Invalid value: 50";
    assert!(problems.contains(path), "{problems}");
}
