//! JSON Schema of what goes over the wire, generated from the types.

use schemars::generate::SchemaSettings;
use schemars::transform::{Transform as _, transform_subschemas};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value;

use crate::event::Event;
use crate::session::SessionRequest;

/// The schema of an event, as `agentwire schema event` prints it.
pub fn event() -> Schema {
    generate::<Event<'static>>("agentwire event")
}

/// The schema of a session request, as `agentwire schema request` prints it.
pub fn request() -> Schema {
    generate::<SessionRequest>("agentwire session request")
}

fn generate<T: JsonSchema>(title: &str) -> Schema {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut schema = SchemaGenerator::new(settings).into_root_schema_for::<T>();
    schema.insert("title".to_owned(), title.into());
    (without_null as fn(&mut Schema)).transform(&mut schema);
    schema
}

/// Takes `null` out of a schema: what is optional is left out, never `null`.
pub fn without_null(schema: &mut Schema) {
    transform_subschemas(&mut (without_null as fn(&mut Schema)), schema);
    let Some(fields) = schema.as_object_mut() else { return };
    if let Some(Value::Array(types)) = fields.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [kind] = types.as_slice() {
            let kind = kind.clone();
            fields.insert("type".to_owned(), kind);
        }
    }
    if let Some(Value::Array(options)) = fields.get_mut("anyOf") {
        options.retain(|option| option.get("type").is_none_or(|kind| kind != "null"));
        if let [Value::Object(option)] = options.as_slice() {
            let option = option.clone();
            fields.remove("anyOf");
            fields.extend(option);
        }
    }
}
