//! JSON Schema of what goes over the wire, generated from the types.

use schemars::generate::SchemaSettings;
use schemars::transform::{Transform as _, transform_subschemas};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::event::Event;
use crate::session::SessionRequest;

/// The schema of an event, as `agentwire schema event` prints it.
pub fn event() -> Schema {
    let mut schema = generate::<Event<'static>>("agentwire event");
    if let Some(Value::Object(mut definitions)) = schema.remove("$defs") {
        let mut event = std::mem::take(schema.ensure_object());
        spread(&mut event, &mut definitions, "#/$defs/");
        event.insert("$defs".to_owned(), definitions.into());
        schema = event.into();
    }
    schema
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

/// Makes one object of each type of event, with the fields that all have and its own, and of the event a
/// choice among them by `type`. A derived schema says it by parts beside a `$ref`, which most programs that
/// make types of schemas pass over. `place` is where definitions stand.
pub fn spread(event: &mut Map<String, Value>, definitions: &mut Map<String, Value>, place: &str) {
    let Some(Value::Array(kinds)) = event.remove("oneOf") else { return };
    let (mut choices, mut mapping, mut parts) = (Vec::new(), Map::new(), Vec::new());
    for kind in kinds {
        let part = kind.get("$ref").and_then(Value::as_str).and_then(|at| at.strip_prefix(place));
        let name = kind.pointer("/properties/type/const").and_then(Value::as_str);
        let (Some(part), Some(name)) = (part, name) else { continue };
        let mut whole = Map::new();
        for source in [Some(&Value::Object(event.clone())), definitions.get(part), Some(&kind)] {
            for (key, value) in source.and_then(Value::as_object).into_iter().flatten() {
                match (whole.get_mut(key), value) {
                    (Some(Value::Object(known)), Value::Object(more)) => known.extend(more.clone()),
                    (Some(Value::Array(known)), Value::Array(more)) => known.extend(more.clone()),
                    _ => drop(whole.insert(key.clone(), value.clone())),
                }
            }
        }
        for key in ["$ref", "$schema", "title"] {
            whole.remove(key);
        }
        let own = format!("{}Event", part.strip_suffix("Event").unwrap_or(part));
        choices.push(json!({ "$ref": format!("{place}{own}") }));
        mapping.insert(name.to_owned(), format!("{place}{own}").into());
        parts.push((own, whole, part.to_owned()));
    }
    for key in ["properties", "required", "type"] {
        event.remove(key);
    }
    event.insert("oneOf".to_owned(), choices.into());
    event.insert("discriminator".to_owned(), json!({ "propertyName": "type", "mapping": mapping }));
    for (_, _, part) in &parts {
        let reference = Value::from(format!("{place}{part}"));
        if !definitions.values().any(|definition| refers(definition, &reference)) {
            definitions.remove(part);
        }
    }
    definitions.extend(parts.into_iter().map(|(own, whole, _)| (own, whole.into())));
}

fn refers(schema: &Value, reference: &Value) -> bool {
    match schema {
        Value::Object(fields) => {
            fields.get("$ref") == Some(reference) || fields.values().any(|it| refers(it, reference))
        }
        Value::Array(items) => items.iter().any(|item| refers(item, reference)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
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
