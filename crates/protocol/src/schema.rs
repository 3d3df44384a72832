//! JSON Schemas of the wire formats, generated from the types.

use schemars::generate::SchemaSettings;
use schemars::transform::{Transform as _, transform_subschemas};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::command::CommandShape;
use crate::event::Event;
use crate::reply::{Replies, ReplyFrame};
use crate::session::SessionRequest;

/// A schema, or a map from names to schemas.
type Fields = Map<String, Value>;

/// The schema of an event, as `agentwire schema event` prints it.
pub fn event() -> Schema {
    whole(generate::<Event<'static>>("agentwire event"), spread_event)
}

/// The schema of a session request, as `agentwire schema request` prints it.
pub fn request() -> Schema {
    generate::<SessionRequest>("agentwire session request")
}

/// The schema of a client's line, as `agentwire schema command` prints it.
pub fn command() -> Schema {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let shape = generator.into_root_schema_for::<CommandShape>();
    whole(finish(shape, "agentwire command frame"), spread_command)
}

/// The schema of a reply to a command, as `agentwire schema reply` prints it. Its definition `Replies` says
/// which command gets which reply.
pub fn reply() -> Schema {
    let mut generator = generator();
    generator.subschema_for::<Replies>();
    finish(generator.into_root_schema_for::<ReplyFrame>(), "agentwire reply frame")
}

fn generate<T: JsonSchema>(title: &str) -> Schema {
    finish(generator().into_root_schema_for::<T>(), title)
}

fn generator() -> SchemaGenerator {
    SchemaSettings::draft2020_12().for_serialize().into_generator()
}

fn finish(mut schema: Schema, title: &str) -> Schema {
    schema.insert("title".to_owned(), title.into());
    (without_null as fn(&mut Schema)).transform(&mut schema);
    schema
}

/// Expands a schema, using its own definitions.
fn whole(mut schema: Schema, spread: fn(&mut Fields, &mut Fields, &str) -> Vec<String>) -> Schema {
    let Some(Value::Object(mut definitions)) = schema.remove("$defs") else { return schema };
    let mut thing = std::mem::take(schema.ensure_object());
    let parts = spread(&mut thing, &mut definitions, "#/$defs/");
    forget(&parts, &mut definitions, "#/$defs/", &Value::Object(thing.clone()));
    thing.insert("$defs".to_owned(), definitions.into());
    thing.into()
}

/// Makes one object per event type, with the common fields and its own, and turns the event into a choice
/// among them by `type`. A derived schema puts the parts next to a `$ref`, which most code generators
/// ignore. `place` is the path of the definitions. Returns the names of the parts, which may now be unused.
pub fn spread_event(event: &mut Fields, definitions: &mut Fields, place: &str) -> Vec<String> {
    let (spread, parts) = spread(event, definitions, place, "type", "Event");
    definitions.extend(spread.into_iter().map(|(_, name, whole)| (name, whole.into())));
    parts
}

/// The same for a command frame, by `command`. Unknown fields are refused, except in commands that stop
/// something.
pub fn spread_command(frame: &mut Fields, definitions: &mut Fields, place: &str) -> Vec<String> {
    let (spread, parts) = spread(frame, definitions, place, "command", "Command");
    for (command, name, mut whole) in spread {
        whole.remove("unevaluatedProperties");
        whole.remove("additionalProperties");
        if !matches!(&*command, "interrupt" | "stop" | "finish" | "cancel" | "unwatch") {
            whole.insert("additionalProperties".to_owned(), false.into());
        }
        if let ("list" | "usage" | "watch" | "unwatch", Some(Value::Object(fields))) =
            (&*command, whole.get_mut("properties"))
        {
            fields.remove("sessionId");
        }
        definitions.insert(name, whole.into());
    }
    parts
}

/// One variant of an object: the value of its tag, its name, and the object.
type Kind = (String, String, Fields);

fn spread(
    thing: &mut Fields,
    definitions: &Fields,
    place: &str,
    tag: &str,
    suffix: &str,
) -> (Vec<Kind>, Vec<String>) {
    let (mut choices, mut mapping) = (Vec::new(), Map::new());
    let (mut spread, mut parts) = (Vec::new(), Vec::new());
    let Some(Value::Array(kinds)) = thing.remove("oneOf") else { return (spread, parts) };
    for kind in kinds {
        let part = kind.get("$ref").and_then(Value::as_str).and_then(|at| at.strip_prefix(place));
        let value = kind.pointer(&format!("/properties/{tag}/const")).and_then(Value::as_str);
        let Some(value) = value else { continue };
        let mut whole = Map::new();
        let own = part.and_then(|part| definitions.get(part)?.as_object());
        for (key, value) in [Some(&*thing), own, kind.as_object()].into_iter().flatten().flatten() {
            match (whole.get_mut(key), value) {
                (Some(Value::Object(known)), Value::Object(more)) => known.extend(more.clone()),
                (Some(Value::Array(known)), Value::Array(more)) => known.extend(more.clone()),
                _ => drop(whole.insert(key.clone(), value.clone())),
            }
        }
        for key in ["$ref", "$schema", "title"] {
            whole.remove(key);
        }
        let mut letters = value.chars();
        let first = letters.next().into_iter().flat_map(char::to_uppercase);
        let name: String = first.chain(letters).chain(suffix.chars()).collect();
        choices.push(json!({ "$ref": format!("{place}{name}") }));
        mapping.insert(value.to_owned(), format!("{place}{name}").into());
        parts.extend(part.map(str::to_owned));
        spread.push((value.to_owned(), name, whole));
    }
    for key in ["properties", "required", "type"] {
        thing.remove(key);
    }
    thing.insert("oneOf".to_owned(), choices.into());
    thing.insert("discriminator".to_owned(), json!({ "propertyName": tag, "mapping": mapping }));
    (spread, parts)
}

/// Removes those of the named definitions that neither another definition nor the document refers to.
pub fn forget(names: &[String], definitions: &mut Fields, place: &str, document: &Value) {
    for name in names {
        let reference = Value::from(format!("{place}{name}"));
        let is_used = definitions.values().chain([document]).any(|it| refers(it, &reference));
        if !is_used {
            definitions.remove(name);
        }
    }
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

/// Removes `null` from a schema: an optional value is left out, never `null`.
pub fn without_null(schema: &mut Schema) {
    transform_subschemas(&mut (without_null as fn(&mut Schema)), schema);
    let Some(fields) = schema.as_object_mut() else { return };
    if fields.get("default").is_some_and(Value::is_null) {
        fields.remove("default");
    }
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
