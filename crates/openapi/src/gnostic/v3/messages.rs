//! The messages of `openapi.v3`.

use super::{
    Form::{
        Any, AnyWithin, Default, Each, Flag, Integer, Items, Map, Message as One, Number, OrReference, SchemaOrFlag,
        Text, Texts,
    },
    Message,
};

pub(super) static DOCUMENT: Message = Message {
    fields: &[
        ("openapi", 1, Text),
        ("info", 2, One(&INFO)),
        ("servers", 3, Each(&One(&SERVER))),
        ("paths", 4, One(&PATHS)),
        ("components", 5, One(&COMPONENTS)),
        ("security", 6, Each(&One(&SECURITY_REQUIREMENT))),
        ("tags", 7, Each(&One(&TAG))),
        ("externalDocs", 8, One(&EXTERNAL_DOCS)),
    ],
    named: None,
    extensions: 9,
};

static INFO: Message = Message {
    fields: &[
        ("title", 1, Text),
        ("description", 2, Text),
        ("termsOfService", 3, Text),
        ("contact", 4, One(&CONTACT)),
        ("license", 5, One(&LICENSE)),
        ("version", 6, Text),
        ("summary", 8, Text),
    ],
    named: None,
    extensions: 7,
};

static CONTACT: Message =
    Message { fields: &[("name", 1, Text), ("url", 2, Text), ("email", 3, Text)], named: None, extensions: 4 };

static LICENSE: Message = Message { fields: &[("name", 1, Text), ("url", 2, Text)], named: None, extensions: 3 };

static SERVER: Message = Message {
    fields: &[("url", 1, Text), ("description", 2, Text), ("variables", 3, Map(&One(&SERVER_VARIABLE)))],
    named: None,
    extensions: 4,
};

static SERVER_VARIABLE: Message = Message {
    fields: &[("enum", 1, Each(&Text)), ("default", 2, Text), ("description", 3, Text)],
    named: None,
    extensions: 4,
};

static PATHS: Message = Message { fields: &[], named: Some((1, One(&PATH_ITEM))), extensions: 2 };

static PATH_ITEM: Message = Message {
    fields: &[
        ("$ref", 1, Text),
        ("summary", 2, Text),
        ("description", 3, Text),
        ("get", 4, One(&OPERATION)),
        ("put", 5, One(&OPERATION)),
        ("post", 6, One(&OPERATION)),
        ("delete", 7, One(&OPERATION)),
        ("options", 8, One(&OPERATION)),
        ("head", 9, One(&OPERATION)),
        ("patch", 10, One(&OPERATION)),
        ("trace", 11, One(&OPERATION)),
        ("servers", 12, Each(&One(&SERVER))),
        ("parameters", 13, Each(&OrReference(&PARAMETER))),
    ],
    named: None,
    extensions: 14,
};

static OPERATION: Message = Message {
    fields: &[
        ("tags", 1, Each(&Text)),
        ("summary", 2, Text),
        ("description", 3, Text),
        ("externalDocs", 4, One(&EXTERNAL_DOCS)),
        ("operationId", 5, Text),
        ("parameters", 6, Each(&OrReference(&PARAMETER))),
        ("requestBody", 7, OrReference(&REQUEST_BODY)),
        ("responses", 8, One(&RESPONSES)),
        ("callbacks", 9, Map(&OrReference(&CALLBACK))),
        ("deprecated", 10, Flag),
        ("security", 11, Each(&One(&SECURITY_REQUIREMENT))),
        ("servers", 12, Each(&One(&SERVER))),
    ],
    named: None,
    extensions: 13,
};

static PARAMETER: Message = Message {
    fields: &[
        ("name", 1, Text),
        ("in", 2, Text),
        ("description", 3, Text),
        ("required", 4, Flag),
        ("deprecated", 5, Flag),
        ("allowEmptyValue", 6, Flag),
        ("style", 7, Text),
        ("explode", 8, Flag),
        ("allowReserved", 9, Flag),
        ("schema", 10, OrReference(&SCHEMA)),
        ("example", 11, Any),
        ("examples", 12, Map(&OrReference(&EXAMPLE))),
        ("content", 13, Map(&One(&MEDIA_TYPE))),
    ],
    named: None,
    extensions: 14,
};

static HEADER: Message = Message {
    fields: &[
        ("description", 1, Text),
        ("required", 2, Flag),
        ("deprecated", 3, Flag),
        ("allowEmptyValue", 4, Flag),
        ("style", 5, Text),
        ("explode", 6, Flag),
        ("allowReserved", 7, Flag),
        ("schema", 8, OrReference(&SCHEMA)),
        ("example", 9, Any),
        ("examples", 10, Map(&OrReference(&EXAMPLE))),
        ("content", 11, Map(&One(&MEDIA_TYPE))),
    ],
    named: None,
    extensions: 12,
};

static REQUEST_BODY: Message = Message {
    fields: &[("description", 1, Text), ("content", 2, Map(&One(&MEDIA_TYPE))), ("required", 3, Flag)],
    named: None,
    extensions: 4,
};

static RESPONSES: Message = Message {
    fields: &[("default", 1, OrReference(&RESPONSE))],
    named: Some((2, OrReference(&RESPONSE))),
    extensions: 3,
};

static RESPONSE: Message = Message {
    fields: &[
        ("description", 1, Text),
        ("headers", 2, Map(&OrReference(&HEADER))),
        ("content", 3, Map(&One(&MEDIA_TYPE))),
        ("links", 4, Map(&OrReference(&LINK))),
    ],
    named: None,
    extensions: 5,
};

static MEDIA_TYPE: Message = Message {
    fields: &[
        ("schema", 1, OrReference(&SCHEMA)),
        ("example", 2, Any),
        ("examples", 3, Map(&OrReference(&EXAMPLE))),
        ("encoding", 4, Map(&One(&ENCODING))),
    ],
    named: None,
    extensions: 5,
};

static ENCODING: Message = Message {
    fields: &[
        ("contentType", 1, Text),
        ("headers", 2, Map(&OrReference(&HEADER))),
        ("style", 3, Text),
        ("explode", 4, Flag),
        ("allowReserved", 5, Flag),
    ],
    named: None,
    extensions: 6,
};

static EXAMPLE: Message = Message {
    fields: &[("summary", 1, Text), ("description", 2, Text), ("value", 3, Any), ("externalValue", 4, Text)],
    named: None,
    extensions: 5,
};

static LINK: Message = Message {
    fields: &[
        ("operationRef", 1, Text),
        ("operationId", 2, Text),
        ("parameters", 3, AnyWithin),
        ("requestBody", 4, AnyWithin),
        ("description", 5, Text),
        ("server", 6, One(&SERVER)),
    ],
    named: None,
    extensions: 7,
};

static CALLBACK: Message = Message { fields: &[], named: Some((1, One(&PATH_ITEM))), extensions: 2 };

static COMPONENTS: Message = Message {
    fields: &[
        ("schemas", 1, Map(&OrReference(&SCHEMA))),
        ("responses", 2, Map(&OrReference(&RESPONSE))),
        ("parameters", 3, Map(&OrReference(&PARAMETER))),
        ("examples", 4, Map(&OrReference(&EXAMPLE))),
        ("requestBodies", 5, Map(&OrReference(&REQUEST_BODY))),
        ("headers", 6, Map(&OrReference(&HEADER))),
        ("securitySchemes", 7, Map(&OrReference(&SECURITY_SCHEME))),
        ("links", 8, Map(&OrReference(&LINK))),
        ("callbacks", 9, Map(&OrReference(&CALLBACK))),
    ],
    named: None,
    extensions: 10,
};

pub(super) static SCHEMA: Message = Message {
    fields: &[
        ("nullable", 1, Flag),
        ("discriminator", 2, One(&DISCRIMINATOR)),
        ("readOnly", 3, Flag),
        ("writeOnly", 4, Flag),
        ("xml", 5, One(&XML)),
        ("externalDocs", 6, One(&EXTERNAL_DOCS)),
        ("example", 7, Any),
        ("deprecated", 8, Flag),
        ("title", 9, Text),
        ("multipleOf", 10, Number),
        ("maximum", 11, Number),
        ("exclusiveMaximum", 12, Flag),
        ("minimum", 13, Number),
        ("exclusiveMinimum", 14, Flag),
        ("maxLength", 15, Integer),
        ("minLength", 16, Integer),
        ("pattern", 17, Text),
        ("maxItems", 18, Integer),
        ("minItems", 19, Integer),
        ("uniqueItems", 20, Flag),
        ("maxProperties", 21, Integer),
        ("minProperties", 22, Integer),
        ("required", 23, Each(&Text)),
        ("enum", 24, Each(&Any)),
        ("type", 25, Text),
        ("allOf", 26, Each(&OrReference(&SCHEMA))),
        ("oneOf", 27, Each(&OrReference(&SCHEMA))),
        ("anyOf", 28, Each(&OrReference(&SCHEMA))),
        ("not", 29, One(&SCHEMA)),
        ("items", 30, Items),
        ("properties", 31, Map(&OrReference(&SCHEMA))),
        ("additionalProperties", 32, SchemaOrFlag),
        ("default", 33, Default),
        ("description", 34, Text),
        ("format", 35, Text),
    ],
    named: None,
    extensions: 36,
};

static DISCRIMINATOR: Message =
    Message { fields: &[("propertyName", 1, Text), ("mapping", 2, Map(&Text))], named: None, extensions: 3 };

static XML: Message = Message {
    fields: &[
        ("name", 1, Text),
        ("namespace", 2, Text),
        ("prefix", 3, Text),
        ("attribute", 4, Flag),
        ("wrapped", 5, Flag),
    ],
    named: None,
    extensions: 6,
};

static EXTERNAL_DOCS: Message =
    Message { fields: &[("description", 1, Text), ("url", 2, Text)], named: None, extensions: 3 };

pub(super) static REFERENCE: Message = Message {
    fields: &[("$ref", 1, Text), ("summary", 2, Text), ("description", 3, Text)],
    named: None,
    extensions: 0,
};

static SECURITY_REQUIREMENT: Message = Message { fields: &[], named: Some((1, Texts)), extensions: 0 };

static SECURITY_SCHEME: Message = Message {
    fields: &[
        ("type", 1, Text),
        ("description", 2, Text),
        ("name", 3, Text),
        ("in", 4, Text),
        ("scheme", 5, Text),
        ("bearerFormat", 6, Text),
        ("flows", 7, One(&OAUTH_FLOWS)),
        ("openIdConnectUrl", 8, Text),
    ],
    named: None,
    extensions: 9,
};

static OAUTH_FLOWS: Message = Message {
    fields: &[
        ("implicit", 1, One(&OAUTH_FLOW)),
        ("password", 2, One(&OAUTH_FLOW)),
        ("clientCredentials", 3, One(&OAUTH_FLOW)),
        ("authorizationCode", 4, One(&OAUTH_FLOW)),
    ],
    named: None,
    extensions: 5,
};

static OAUTH_FLOW: Message = Message {
    fields: &[("authorizationUrl", 1, Text), ("tokenUrl", 2, Text), ("refreshUrl", 3, Text), ("scopes", 4, Map(&Text))],
    named: None,
    extensions: 5,
};

static TAG: Message = Message {
    fields: &[("name", 1, Text), ("description", 2, Text), ("externalDocs", 3, One(&EXTERNAL_DOCS))],
    named: None,
    extensions: 4,
};
