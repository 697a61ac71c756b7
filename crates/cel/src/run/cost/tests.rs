//! Every function is charged for, and told of.

use std::collections::BTreeSet;

use super::*;
use crate::functions;

/// Overloads that cost one, whatever they are given: upstream names none of them in `CallCost` and in cel-go's `CostTracker`. A new
/// one is written here only if it does the same work for a long argument as for a short one, or upstream charges it so.
const COST_ONE: &[&str] = &[
    "authorizer_path authorizer_group authorizer_serviceaccount groupcheck_resource resourcecheck_subresource \
     resourcecheck_namespace resourcecheck_name decision_errored decision_error decision_allowed decision_reason",
    "cidr_ip cidr_prefix_length cidr_masked cidr_to_string",
    "bool_to_bool string_to_bool bytes_to_bytes double_to_double int64_to_double string_to_double uint64_to_double \
     int64_to_int64 double_to_int64 duration_to_int64 string_to_int64 timestamp_to_int64 uint64_to_int64 \
     string_to_string bool_to_string double_to_string duration_to_string int64_to_string timestamp_to_string \
     uint64_to_string uint64_to_uint64 double_to_uint64 int64_to_uint64 string_to_uint64",
    "format.dns1123Label format.dns1123Subdomain format.dns1035Label format.qualifiedName format.dns1123LabelPrefix \
     format.dns1123SubdomainPrefix format.dns1035LabelPrefix format.labelValue format.uri format.uuid format.byte \
     format.date format.datetime",
    "ip_family ip_is_unspecified ip_is_loopback ip_is_link_local_multicast ip_is_link_local_unicast \
     ip_is_global_unicast ip_to_string",
    "@mapInsert_map_key_value @mapInsert_map_map",
    "conditional logical_and logical_or logical_not not_strictly_false add_double add_duration_duration \
     add_duration_timestamp add_timestamp_duration add_int64 add_list add_uint64 divide_double divide_int64 \
     divide_uint64 modulo_int64 modulo_uint64 multiply_double multiply_int64 multiply_uint64 negate_double negate_int64 \
     subtract_double subtract_duration_duration subtract_int64 subtract_timestamp_duration subtract_timestamp_timestamp \
     subtract_uint64 in_map index_list index_map size_string string_size size_bytes bytes_size size_list list_size \
     size_map map_size to_dyn type",
    "format-named greater_bool greater_double greater_double_int64 greater_double_uint64 greater_duration \
     greater_equals_bool greater_equals_double greater_equals_double_int64 greater_equals_double_uint64 \
     greater_equals_duration greater_equals_int64 greater_equals_int64_double greater_equals_int64_uint64 \
     greater_equals_timestamp greater_equals_uint64 greater_equals_uint64_double greater_equals_uint64_int64 \
     greater_int64 greater_int64_double greater_int64_uint64 greater_timestamp greater_uint64 \
     greater_uint64_double greater_uint64_int64 less_bool less_double less_double_int64 less_double_uint64 \
     less_duration less_equals_bool less_equals_double less_equals_double_int64 less_equals_double_uint64 \
     less_equals_duration less_equals_int64 less_equals_int64_double less_equals_int64_uint64 \
     less_equals_timestamp less_equals_uint64 less_equals_uint64_double less_equals_uint64_int64 less_int64 \
     less_int64_double less_int64_uint64 less_timestamp less_uint64 less_uint64_double less_uint64_int64",
    "optional_of optional_ofNonZeroValue optional_none optional_value optional_hasValue optional_or_optional \
     optional_orValue_value select_optional_field list_optindex_optional_int optional_list_optindex_optional_int \
     map_optindex_optional_value optional_map_optindex_optional_value optional_list_index_int optional_map_index_value",
    "quantity_sign quantity_is_greater_than quantity_is_less_than quantity_compare_to quantity_get_float \
     quantity_get_int quantity_is_integer quantity_add quantity_add_int quantity_sub quantity_sub_int",
    "matches",
    "semver_is_greater_than semver_is_less_than semver_compare_to semver_major semver_minor semver_patch",
    "string_char_at_int",
    "duration_to_duration int64_to_duration string_to_duration timestamp_to_timestamp int64_to_timestamp \
     string_to_timestamp timestamp_to_year timestamp_to_year_with_tz timestamp_to_month timestamp_to_month_with_tz \
     timestamp_to_day_of_year timestamp_to_day_of_year_with_tz timestamp_to_day_of_month \
     timestamp_to_day_of_month_with_tz timestamp_to_day_of_month_1_based timestamp_to_day_of_month_1_based_with_tz \
     timestamp_to_day_of_week timestamp_to_day_of_week_with_tz timestamp_to_hours timestamp_to_hours_with_tz \
     timestamp_to_minutes timestamp_to_minutes_with_tz timestamp_to_seconds timestamp_to_seconds_tz \
     timestamp_to_milliseconds timestamp_to_milliseconds_with_tz duration_to_hours duration_to_minutes \
     duration_to_seconds duration_to_milliseconds",
    "url_get_scheme url_get_host url_get_hostname url_get_port url_get_escaped_path url_get_query is_url_string",
];

/// The page that tells people which functions there are.
const PAGE: &str = include_str!("../../../../../docs/reference/cel.md");

#[test]
fn what_costs_one_is_listed() {
    let listed: BTreeSet<&str> = COST_ONE.iter().flat_map(|it| it.split_whitespace()).collect();
    let mut found = BTreeSet::new();
    for function in functions::table() {
        for overload in &function.overloads {
            if Rule::of(function.name, Some(overload)) == Rule::One {
                found.insert(overload.id);
            }
        }
    }
    let unlisted: Vec<_> = found.difference(&listed).collect();
    assert!(unlisted.is_empty(), "these have no rule, and are not said to cost one: {unlisted:?}");
    let wrong: Vec<_> = listed.difference(&found).collect();
    assert!(wrong.is_empty(), "these are said to cost one and have a rule, or are not there: {wrong:?}");
}

#[test]
fn every_function_is_on_the_page() {
    let table = PAGE.split("\n## ").find(|it| it.starts_with("Functions\n")).expect("a table of functions");
    let is_called_by_name = |name: &str| name.starts_with(|it: char| it.is_ascii_alphabetic()) && !name.contains('@');
    let names = functions::table().map(|it| it.name).filter(|it| is_called_by_name(it));
    let missing: Vec<&str> = names.filter(|it| !table.contains(&format!("`{it}`"))).collect();
    assert!(missing.is_empty(), "{missing:?} have no place in the table of functions");
}
