//! How much of the machine's swap a container may use (KEP-2400).

use corten_api::core::v1::{Container, Pod};

use crate::{
    NodeFacts, Qos, SwapBehavior,
    spec::{
        downward::quantity,
        pod::{is_static, is_system_critical},
        sandbox::qos,
    },
};

/// In bytes. Nothing for critical Pods, and for containers that ask for no memory or for no less than they may have.
pub(crate) fn limit(container: &Container, pod: &Pod, facts: Option<&NodeFacts>, behavior: SwapBehavior) -> i64 {
    let bytes = |limit| quantity(container, limit, "memory").map_or(0, |it| it.value());
    let (request, limit) = (bytes(false), bytes(true));
    let is_critical = is_system_critical(pod) || is_static(pod);
    let may_swap = behavior == SwapBehavior::LimitedSwap && qos(pod) == Qos::Burstable && !is_critical;
    let Some(facts) = facts.filter(|_| may_swap && request != limit) else { return 0 };
    let share = i128::from(request.max(0)) * i128::from(facts.swap_bytes) / i128::from(facts.memory_bytes.max(1));
    i64::try_from(share).unwrap_or(i64::MAX).min(facts.swap_bytes)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::spec::pod::spec_of;

    #[test]
    fn swap_is_shared_as_memory_is_requested() {
        let facts = NodeFacts { memory_bytes: 8 << 30, swap_bytes: 4 << 30, ..NodeFacts::default() };
        let limited = SwapBehavior::LimitedSwap;
        for (resources, priority, behavior, expected) in [
            (json!({"requests": {"memory": "1Gi"}}), 0, limited, 512 << 20),
            (json!({"requests": {"memory": "1Gi"}}), 0, SwapBehavior::NoSwap, 0),
            (json!({"requests": {"memory": "1Gi"}, "limits": {"memory": "2Gi"}}), 0, limited, 512 << 20),
            (json!({"requests": {"memory": "16Gi"}}), 0, limited, 4 << 30),
            (json!({"requests": {"memory": "1Gi"}, "limits": {"memory": "1Gi"}}), 0, limited, 0),
            (json!({"requests": {"cpu": "1"}}), 0, limited, 0),
            (json!({}), 0, limited, 0),
            (json!({"requests": {"memory": "1Gi"}}), 2_000_000_000, limited, 0),
        ] {
            let containers = json!([{"name": "main", "resources": resources}]);
            let pod = json!({"metadata": {"name": "web"}, "spec": {"priority": priority, "containers": containers}});
            let pod: Pod = serde_json::from_value(pod).expect("a Pod");
            let container = &spec_of(&pod).containers[0];
            assert_eq!(limit(container, &pod, Some(&facts), behavior), expected, "{resources} {priority} {behavior:?}");
            assert_eq!(limit(container, &pod, None, behavior), 0);
        }
    }
}
