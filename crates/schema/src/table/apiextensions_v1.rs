//! The types of `io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1`. Written by `cargo xtask codegen`; not to be edited.

use super::build::*;

pub(super) static CUSTOM_RESOURCE_COLUMN_DEFINITION: Type = Type {
    name: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceColumnDefinition",
    atomic: false,
    fields: &[
        field("description", String).at(&[4]).always(),
        field("format", String).at(&[3]).always(),
        field("jsonPath", String).zero().required().at(&[6]).always(),
        field("name", String).zero().required().at(&[1]).always(),
        field("priority", Int32).at(&[5]).always(),
        field("type", String).zero().required().at(&[2]).always(),
    ],
    wire: &[3, 5, 1, 0, 4, 2],
};

pub(super) static CUSTOM_RESOURCE_CONVERSION: Type = Type {
    name: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceConversion",
    atomic: false,
    fields: &[
        field("strategy", String).zero().required().at(&[1]).always(),
        field("webhook", Object(&super::apiextensions_v1::WEBHOOK_CONVERSION)).at(&[2]),
    ],
    wire: &[0, 1],
};

pub(super) static CUSTOM_RESOURCE_DEFINITION: Type = Type {
    name: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition",
    atomic: false,
    fields: &[
        field("apiVersion", String),
        field("kind", String),
        field("metadata", Object(&super::meta_v1::OBJECT_META)).zero().required().at(&[1]).always(),
        field("spec", Object(&super::apiextensions_v1::CUSTOM_RESOURCE_DEFINITION_SPEC))
            .zero()
            .required()
            .at(&[2])
            .always(),
        field("status", Object(&super::apiextensions_v1::CUSTOM_RESOURCE_DEFINITION_STATUS)).zero().at(&[3]).always(),
    ],
    wire: &[2, 3, 4],
};

pub(super) static CUSTOM_RESOURCE_DEFINITION_CONDITION: Type = Type {
    name: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionCondition",
    atomic: false,
    fields: &[
        field("lastTransitionTime", Time).at(&[3]).always(),
        field("message", String).at(&[5]).always(),
        field("observedGeneration", Int64).at(&[6]).always(),
        field("reason", String).at(&[4]).always(),
        field("status", String).zero().required().at(&[2]).always(),
        field("type", String).zero().required().at(&[1]).always(),
    ],
    wire: &[5, 4, 0, 3, 1, 2],
};

pub(super) static CUSTOM_RESOURCE_DEFINITION_NAMES: Type = Type {
    name: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionNames",
    atomic: false,
    fields: &[
        field("categories", List(&String)).at(&[6]),
        field("kind", String).zero().required().at(&[4]).always(),
        field("listKind", String).at(&[5]).always(),
        field("plural", String).zero().required().at(&[1]).always(),
        field("shortNames", List(&String)).at(&[3]),
        field("singular", String).at(&[2]).always(),
    ],
    wire: &[3, 5, 4, 1, 2, 0],
};

pub(super) static CUSTOM_RESOURCE_DEFINITION_SPEC: Type = Type {
    name: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionSpec",
    atomic: false,
    fields: &[
        field("conversion", Object(&super::apiextensions_v1::CUSTOM_RESOURCE_CONVERSION)).at(&[9]),
        field("group", String).zero().required().at(&[1]).always(),
        field("names", Object(&super::apiextensions_v1::CUSTOM_RESOURCE_DEFINITION_NAMES))
            .zero()
            .required()
            .at(&[3])
            .always(),
        field("preserveUnknownFields", Boolean).at(&[10]).always(),
        field("scope", String).zero().required().at(&[4]).always(),
        field("versions", List(&Object(&super::apiextensions_v1::CUSTOM_RESOURCE_DEFINITION_VERSION)))
            .required()
            .at(&[7]),
    ],
    wire: &[1, 2, 4, 5, 0, 3],
};

pub(super) static CUSTOM_RESOURCE_DEFINITION_STATUS: Type = Type {
    name: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionStatus",
    atomic: false,
    fields: &[
        field("acceptedNames", Object(&super::apiextensions_v1::CUSTOM_RESOURCE_DEFINITION_NAMES))
            .zero()
            .at(&[2])
            .always(),
        field("conditions", List(&Object(&super::apiextensions_v1::CUSTOM_RESOURCE_DEFINITION_CONDITION)))
            .merged(&Merge { apply: ByKeys(&["type"]), patch: Replace, retain_keys: false })
            .at(&[1]),
        field("observedGeneration", Int64).at(&[4]).always(),
        field("storedVersions", List(&String)).at(&[3]),
    ],
    wire: &[1, 0, 3, 2],
};

pub(super) static CUSTOM_RESOURCE_DEFINITION_VERSION: Type = Type {
    name: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionVersion",
    atomic: false,
    fields: &[
        field("additionalPrinterColumns", List(&Object(&super::apiextensions_v1::CUSTOM_RESOURCE_COLUMN_DEFINITION)))
            .at(&[6]),
        field("deprecated", Boolean).at(&[7]).always(),
        field("deprecationWarning", String).at(&[8]),
        field("name", String).zero().required().at(&[1]).always(),
        field("schema", Object(&super::apiextensions_v1::CUSTOM_RESOURCE_VALIDATION)).at(&[4]),
        field("selectableFields", List(&Object(&super::apiextensions_v1::SELECTABLE_FIELD))).at(&[9]),
        field("served", Boolean).zero().required().at(&[2]).always(),
        field("storage", Boolean).zero().required().at(&[3]).always(),
        field("subresources", Object(&super::apiextensions_v1::CUSTOM_RESOURCE_SUBRESOURCES)).at(&[5]),
    ],
    wire: &[3, 6, 7, 4, 8, 0, 1, 2, 5],
};

pub(super) static CUSTOM_RESOURCE_SUBRESOURCE_SCALE: Type = Type {
    name: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceSubresourceScale",
    atomic: false,
    fields: &[
        field("labelSelectorPath", String).at(&[3]),
        field("specReplicasPath", String).zero().required().at(&[1]).always(),
        field("statusReplicasPath", String).zero().required().at(&[2]).always(),
    ],
    wire: &[1, 2, 0],
};

pub(super) static CUSTOM_RESOURCE_SUBRESOURCES: Type = Type {
    name: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceSubresources",
    atomic: false,
    fields: &[
        field("scale", Object(&super::apiextensions_v1::CUSTOM_RESOURCE_SUBRESOURCE_SCALE)).at(&[2]),
        field("status", Any).at(&[1]),
    ],
    wire: &[1, 0],
};

pub(super) static CUSTOM_RESOURCE_VALIDATION: Type = Type {
    name: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceValidation",
    atomic: false,
    fields: &[field("openAPIV3Schema", Object(&super::apiextensions_v1::JSON_SCHEMA_PROPS)).at(&[1])],
    wire: &[0],
};

pub(super) static EXTERNAL_DOCUMENTATION: Type = Type {
    name: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.ExternalDocumentation",
    atomic: false,
    fields: &[field("description", String).at(&[1]).always(), field("url", String).at(&[2]).always()],
    wire: &[0, 1],
};

pub(super) static JSON_SCHEMA_PROPS: Type = Type {
    name: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps",
    atomic: false,
    fields: &[
        field("$ref", String).at(&[3]),
        field("$schema", String).at(&[2]).always(),
        field("additionalItems", Any).at(&[33]),
        field("additionalProperties", Any).at(&[30]),
        field("allOf", List(&Object(&super::apiextensions_v1::JSON_SCHEMA_PROPS))).at(&[25]),
        field("anyOf", List(&Object(&super::apiextensions_v1::JSON_SCHEMA_PROPS))).at(&[27]),
        field("default", Any).at(&[8]),
        field("definitions", Map(&Object(&super::apiextensions_v1::JSON_SCHEMA_PROPS))).at(&[34]),
        field("dependencies", Map(&Any)).at(&[32]),
        field("description", String).at(&[4]).always(),
        field("enum", List(&Any)).at(&[20]),
        field("example", Any).at(&[36]),
        field("exclusiveMaximum", Boolean).at(&[10]).always(),
        field("exclusiveMinimum", Boolean).at(&[12]).always(),
        field("externalDocs", Object(&super::apiextensions_v1::EXTERNAL_DOCUMENTATION)).at(&[35]),
        field("format", String).at(&[6]).always(),
        field("id", String).at(&[1]).always(),
        field("items", Any).at(&[24]),
        field("maxItems", Int64).at(&[16]),
        field("maxLength", Int64).at(&[13]),
        field("maxProperties", Int64).at(&[21]),
        field("maximum", Number).at(&[9]),
        field("minItems", Int64).at(&[17]),
        field("minLength", Int64).at(&[14]),
        field("minProperties", Int64).at(&[22]),
        field("minimum", Number).at(&[11]),
        field("multipleOf", Number).at(&[19]),
        field("not", Object(&super::apiextensions_v1::JSON_SCHEMA_PROPS)).at(&[28]),
        field("nullable", Boolean).at(&[37]).always(),
        field("oneOf", List(&Object(&super::apiextensions_v1::JSON_SCHEMA_PROPS))).at(&[26]),
        field("pattern", String).at(&[15]).always(),
        field("patternProperties", Map(&Object(&super::apiextensions_v1::JSON_SCHEMA_PROPS))).at(&[31]),
        field("properties", Map(&Object(&super::apiextensions_v1::JSON_SCHEMA_PROPS))).at(&[29]),
        field("required", List(&String)).at(&[23]),
        field("title", String).at(&[7]).always(),
        field("type", String).at(&[5]).always(),
        field("uniqueItems", Boolean).at(&[18]).always(),
        field("x-kubernetes-embedded-resource", Boolean).at(&[39]).always(),
        field("x-kubernetes-int-or-string", Boolean).at(&[40]).always(),
        field("x-kubernetes-list-map-keys", List(&String)).at(&[41]),
        field("x-kubernetes-list-type", String).at(&[42]),
        field("x-kubernetes-map-type", String).at(&[43]),
        field("x-kubernetes-preserve-unknown-fields", Boolean).at(&[38]),
        field("x-kubernetes-validations", List(&Object(&super::apiextensions_v1::VALIDATION_RULE)))
            .merged(&Merge { apply: ByKeys(&["rule"]), patch: ByKey("rule"), retain_keys: false })
            .at(&[44]),
    ],
    wire: &[
        16, 1, 0, 9, 35, 15, 34, 6, 21, 12, 25, 13, 19, 23, 30, 18, 22, 36, 26, 10, 20, 24, 33, 17, 4, 29, 5, 27, 32,
        3, 31, 8, 2, 7, 14, 11, 28, 42, 37, 38, 39, 40, 41, 43,
    ],
};

pub(super) static SELECTABLE_FIELD: Type = Type {
    name: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.SelectableField",
    atomic: false,
    fields: &[field("jsonPath", String).zero().required().at(&[1]).always()],
    wire: &[0],
};

pub(super) static SERVICE_REFERENCE: Type = Type {
    name: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.ServiceReference",
    atomic: false,
    fields: &[
        field("name", String).zero().required().at(&[2]).always(),
        field("namespace", String).zero().required().at(&[1]).always(),
        field("path", String).at(&[3]),
        field("port", Int32).at(&[4]),
    ],
    wire: &[1, 0, 2, 3],
};

pub(super) static VALIDATION_RULE: Type = Type {
    name: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.ValidationRule",
    atomic: false,
    fields: &[
        field("fieldPath", String).at(&[5]).always(),
        field("message", String).at(&[2]).always(),
        field("messageExpression", String).at(&[3]).always(),
        field("optionalOldSelf", Boolean).at(&[6]),
        field("reason", String).at(&[4]),
        field("rule", String).zero().required().at(&[1]).always(),
    ],
    wire: &[5, 1, 2, 4, 0, 3],
};

pub(super) static WEBHOOK_CLIENT_CONFIG: Type = Type {
    name: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.WebhookClientConfig",
    atomic: false,
    fields: &[
        field("caBundle", Bytes).at(&[2]),
        field("service", Object(&super::apiextensions_v1::SERVICE_REFERENCE)).at(&[1]),
        field("url", String).at(&[3]),
    ],
    wire: &[1, 0, 2],
};

pub(super) static WEBHOOK_CONVERSION: Type = Type {
    name: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.WebhookConversion",
    atomic: false,
    fields: &[
        field("clientConfig", Object(&super::apiextensions_v1::WEBHOOK_CLIENT_CONFIG)).at(&[2]),
        field("conversionReviewVersions", List(&String)).required().at(&[3]),
    ],
    wire: &[0, 1],
};
